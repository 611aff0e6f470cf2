// The configuration of each program of a one-node cluster: flags of the control plane, flags and files of the node.

import { existsSync } from 'node:fs';
import { certificate, key } from './certificates.mjs';
import {
  ADDRESSES,
  AUTHENTICATION_CONFIG,
  CONTAINERD_SOCKET,
  CONTROL_GROUP,
  inState,
  NODE,
  NODE_ADDRESS,
  POD_NETWORK,
  PORTS,
} from './layout.mjs';

const ETCD = `http://127.0.0.1:${PORTS.etcd}`;

/** Flags of the control plane, in the order in which its programs are started. */
export function controlPlaneFlags() {
  return {
    etcd: {
      'data-dir': inState('etcd'),
      'listen-client-urls': ETCD,
      'advertise-client-urls': ETCD,
      'listen-peer-urls': `http://127.0.0.1:${PORTS.etcdPeer}`,
      // What a crash of the machine would lose is lost with the machine.
      'unsafe-no-fsync': true,
    },
    'kube-apiserver': {
      'etcd-servers': ETCD,
      'bind-address': NODE_ADDRESS,
      'secure-port': PORTS.apiServer,
      'advertise-address': NODE_ADDRESS,
      'client-ca-file': certificate('ca'),
      'tls-cert-file': certificate('api-server'),
      'tls-private-key-file': key('api-server'),
      'service-account-key-file': inState('pki', 'service-accounts.pub'),
      'service-account-signing-key-file': key('service-accounts'),
      'service-account-issuer': 'https://kubernetes.default.svc.cluster.local',
      'service-cluster-ip-range': ADDRESSES.services,
      'authentication-config': AUTHENTICATION_CONFIG,
      'authorization-mode': 'Node,RBAC',
      'enable-admission-plugins': 'NodeRestriction',
      'allow-privileged': true,
      'kubelet-client-certificate': certificate('api-server-at-kubelet'),
      'kubelet-client-key': key('api-server-at-kubelet'),
      'kubelet-certificate-authority': certificate('ca'),
      // The node's name is in no DNS, so logs and exec go to its address.
      'kubelet-preferred-address-types': 'InternalIP',
    },
    'kube-controller-manager': {
      kubeconfig: inState('controller-manager.kubeconfig'),
      'bind-address': '127.0.0.1',
      'secure-port': PORTS.controllerManager,
      'allocate-node-cidrs': false,
      'service-account-private-key-file': key('service-accounts'),
      'root-ca-file': certificate('ca'),
      'cluster-signing-cert-file': certificate('ca'),
      'cluster-signing-key-file': key('ca'),
      'use-service-account-credentials': true,
      'flex-volume-plugin-dir': inState('volume-plugins'),
      'leader-elect': false,
    },
    'kube-scheduler': {
      kubeconfig: inState('scheduler.kubeconfig'),
      'bind-address': '127.0.0.1',
      'secure-port': PORTS.scheduler,
      'leader-elect': false,
    },
  };
}

/** The text of the API server's AuthenticationConfiguration while no issuer is in it. */
export function noIssuers() {
  return json({ apiVersion: 'apiserver.config.k8s.io/v1', kind: 'AuthenticationConfiguration' });
}

/** Files of the node's programs by their name in the state's folder. */
export function nodeFiles({ pauseImage, snapshotter }) {
  return {
    'containerd.toml': containerd(pauseImage, snapshotter),
    'cni/10-pods.conflist': json(podNetwork()),
    'kubelet.json': json(kubelet()),
    'kube-proxy.json': json(kubeProxy()),
  };
}

export function nodeFlags() {
  return {
    containerd: { config: inState('containerd.toml') },
    kubelet: {
      config: inState('kubelet.json'),
      kubeconfig: inState('kubelet.kubeconfig'),
      'hostname-override': NODE,
      'node-ip': NODE_ADDRESS,
      'root-dir': inState('kubelet'),
      'cert-dir': inState('kubelet', 'pki'),
    },
    'kube-proxy': { config: inState('kube-proxy.json') },
  };
}

function containerd(pauseImage, snapshotter) {
  return `version = 2
root = "${inState('containerd')}"
state = "${inState('containerd-run')}"
# Everything but what pods need: the machine's other devices and networks are none of its business.
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.tracing.processor.v1.otlp"]
[grpc]
  address = "${CONTAINERD_SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${pauseImage}"
  # Lowering a score takes CAP_SYS_RESOURCE, which root in a container or a sandbox does not have; no pod would start.
  restrict_oom_score_adj = true
  # Otherwise below /run/netns, among the machine's own.
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "${inState('cni')}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "${snapshotter}"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        Root = "${inState('runc')}"
`;
}

/** Each pod has a link of its own to the node, which routes: no bridge, so no kernel module for rules on bridges. */
function podNetwork() {
  const ipam = {
    type: 'host-local',
    ranges: [[{ subnet: ADDRESSES.pods }]],
    routes: [{ dst: '0.0.0.0/0' }],
    dataDir: inState('pod-addresses'),
  };
  return { cniVersion: '1.0.0', name: POD_NETWORK, plugins: [{ type: 'ptp', ipMasq: false, ipam }] };
}

function kubelet() {
  // A resolver on the loopback address, as systemd's, is out of reach for pods.
  const resolver = '/run/systemd/resolve/resolv.conf';
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    address: NODE_ADDRESS,
    port: PORTS.kubelet,
    healthzPort: PORTS.kubeletHealth,
    authentication: {
      x509: { clientCAFile: certificate('ca') },
      anonymous: { enabled: false },
      webhook: { enabled: false },
    },
    authorization: { mode: 'AlwaysAllow' },
    tlsCertFile: certificate('kubelet'),
    tlsPrivateKeyFile: key('kubelet'),
    containerRuntimeEndpoint: `unix://${CONTAINERD_SOCKET}`,
    cgroupDriver: 'cgroupfs',
    cgroupRoot: `/${CONTROL_GROUP}`,
    failCgroupV1: false,
    failSwapOn: false,
    clusterDNS: [ADDRESSES.dnsService],
    clusterDomain: 'cluster.local',
    resolvConf: existsSync(resolver) ? resolver : '/etc/resolv.conf',
    podLogsDir: inState('pod-logs'),
    volumePluginDir: inState('volume-plugins'),
    // Its chains would stay behind.
    makeIPTablesUtilChains: false,
    // A full disk is no reason to remove the images that cannot be pulled again.
    evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '1%', 'imagefs.available': '1%' },
    imageGCHighThresholdPercent: 100,
  };
}

function kubeProxy() {
  return {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    clientConnection: { kubeconfig: inState('proxy.kubeconfig') },
    mode: 'iptables',
    clusterCIDR: ADDRESSES.pods,
    hostnameOverride: NODE,
    nodePortAddresses: ['127.0.0.0/8', `${NODE_ADDRESS}/32`],
    healthzBindAddress: `127.0.0.1:${PORTS.proxyHealth}`,
    metricsBindAddress: `127.0.0.1:${PORTS.proxyMetrics}`,
    // The limits of the machine stay as they are.
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
  };
}

function json(value) {
  return JSON.stringify(value, undefined, 2);
}
