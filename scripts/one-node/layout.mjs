// Where a one-node cluster keeps things, and which addresses and ports are its own: none of Kubernetes' usual ones, so
// that it can stand beside another cluster's programs and beside the API servers that tests start.

import { join } from 'node:path';
import { cacheFolder } from '../cache-folder.mjs';

/** Everything that ends with the cluster. */
export const STATE = '/var/lib/grantry-cluster';
export const KUBECONFIG = cacheFolder('grantry-cluster', 'kubeconfig');
/** The AuthenticationConfiguration of the API server, which reads it again when it changes. */
export const AUTHENTICATION_CONFIG = inState('authentication.json');
/** Images that take long to make; they outlive the cluster. */
export const IMAGE_STORE = cacheFolder('grantry-cluster', 'images');

/** Below it are the control groups of pods. */
export const CONTROL_GROUP = 'grantry-cluster';

export const NODE = 'node1';
/** The node has its address on the loopback device. */
export const NODE_ADDRESS = '10.99.0.1';
export const ADDRESSES = {
  all: '10.99.0.0/16',
  pods: '10.99.1.0/24',
  services: '10.99.16.0/20',
  kubernetesService: '10.99.16.1',
  dnsService: '10.99.16.10',
};
export const PORTS = {
  apiServer: 16443,
  etcd: 12379,
  etcdPeer: 12380,
  controllerManager: 12257,
  scheduler: 12259,
  kubelet: 12250,
  kubeletHealth: 12248,
  proxyHealth: 12256,
  proxyMetrics: 12249,
};

export const CONTAINERD_SOCKET = inState('containerd.sock');
/** The name of the pods' network, and of the state that network plugins keep of it. */
export const POD_NETWORK = 'grantry-cluster';

export function inState(...names) {
  return join(STATE, ...names);
}
