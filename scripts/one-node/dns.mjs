// The objects that cluster DNS consists of.

import { ADDRESSES } from './layout.mjs';

/** Cluster DNS: CoreDNS, what it may read, and the Service at the address that every pod asks. */
export function dnsObjects(image) {
  const metadata = { name: 'coredns', namespace: 'kube-system' };
  const labels = { 'k8s-app': 'kube-dns' };
  const role = 'system:coredns';
  const corefile = `.:5353 {
  errors
  ready
  kubernetes cluster.local in-addr.arpa
  forward . /etc/resolv.conf
  cache 5
}
`;
  const container = {
    name: 'coredns',
    image,
    imagePullPolicy: 'Never',
    args: ['-conf', '/etc/coredns/Corefile'],
    readinessProbe: { httpGet: { path: '/ready', port: 8181 }, periodSeconds: 1 },
    volumeMounts: [{ name: 'config', mountPath: '/etc/coredns' }],
  };
  const pod = {
    serviceAccountName: 'coredns',
    dnsPolicy: 'Default',
    containers: [container],
    volumes: [{ name: 'config', configMap: { name: 'coredns' } }],
  };
  const items = [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { Corefile: corefile } },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: role },
      rules: [
        { apiGroups: [''], resources: ['services', 'pods', 'namespaces'], verbs: ['list', 'watch'] },
        { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
      ],
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: role },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [{ kind: 'ServiceAccount', ...metadata }],
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: pod } },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'kube-dns', namespace: 'kube-system' },
      spec: {
        clusterIP: ADDRESSES.dnsService,
        selector: labels,
        ports: ['UDP', 'TCP'].map((protocol) => ({
          name: `dns-${protocol.toLowerCase()}`,
          port: 53,
          targetPort: 5353,
          protocol,
        })),
      },
    },
  ];
  return { apiVersion: 'v1', kind: 'List', items };
}
