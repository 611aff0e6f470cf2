// The certificates and key pairs of a one-node cluster, made by openssl, and the kubeconfigs that carry them.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { ADDRESSES, inState, NODE, NODE_ADDRESS, PORTS } from './layout.mjs';
import { call } from './processes.mjs';

const DAYS = 365;
const API_SERVER_NAMES = [
  ...['kubernetes', 'kubernetes.default', 'kubernetes.default.svc'].map((name) => `DNS:${name}`),
  'DNS:kubernetes.default.svc.cluster.local',
  ...[ADDRESSES.kubernetesService, NODE_ADDRESS].map((address) => `IP:${address}`),
].join();
const CLIENT = 'extendedKeyUsage=clientAuth';

/** The holders of certificates: subject and extensions. */
const HOLDERS = {
  'api-server': { subject: '/CN=kube-apiserver', extensions: [`subjectAltName=${API_SERVER_NAMES}`] },
  'api-server-at-kubelet': { subject: '/O=system:masters/CN=apiserver-kubelet', extensions: [CLIENT] },
  admin: { subject: '/O=system:masters/CN=admin', extensions: [CLIENT] },
  'controller-manager': { subject: '/CN=system:kube-controller-manager', extensions: [CLIENT] },
  scheduler: { subject: '/CN=system:kube-scheduler', extensions: [CLIENT] },
  proxy: { subject: '/CN=system:kube-proxy', extensions: [CLIENT] },
  kubelet: {
    subject: `/O=system:nodes/CN=system:node:${NODE}`,
    extensions: [`subjectAltName=DNS:${NODE},IP:${NODE_ADDRESS}`, 'extendedKeyUsage=clientAuth,serverAuth'],
  },
};

/** Makes all of them: NAME.crt and NAME.key for the authority `ca` and for each holder, `service-accounts.key` and `.pub`. */
export function makeCertificates() {
  mkdirSync(inState('pki'), { recursive: true, mode: 0o700 });
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const authority = ['-x509', ...curve, '-days', DAYS, '-subj', '/CN=grantry-cluster', '-keyout', key('ca')];
  openssl('req', ...authority, '-out', certificate('ca'));
  openssl('genrsa', '-out', key('service-accounts'), '2048');
  openssl('rsa', '-in', key('service-accounts'), '-pubout', '-out', inState('pki', 'service-accounts.pub'));
  for (const [name, { subject, extensions }] of Object.entries(HOLDERS)) {
    const [request, extensionFile] = ['csr', 'ext'].map((ending) => inState('pki', `${name}.${ending}`));
    writeFileSync(extensionFile, extensions.join('\n'));
    openssl('req', ...curve, '-subj', subject, '-keyout', key(name), '-out', request);
    const signing = ['-CA', certificate('ca'), '-CAkey', key('ca'), '-CAcreateserial', '-days', DAYS];
    openssl('x509', '-req', '-in', request, ...signing, '-extfile', extensionFile, '-out', certificate(name));
  }
}

/** The text of a kubeconfig for a holder; YAML's subset JSON. */
export function kubeconfig(holder) {
  const inline = (path) => readFileSync(path).toString('base64');
  const name = 'grantry-cluster';
  const cluster = {
    server: `https://${NODE_ADDRESS}:${PORTS.apiServer}`,
    'certificate-authority-data': inline(certificate('ca')),
  };
  const user = { 'client-certificate-data': inline(certificate(holder)), 'client-key-data': inline(key(holder)) };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster }],
    users: [{ name: holder, user }],
    contexts: [{ name, context: { cluster: name, user: holder } }],
    'current-context': name,
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}

export function certificate(name) {
  return inState('pki', `${name}.crt`);
}

export function key(name) {
  return inState('pki', `${name}.key`);
}

function openssl(...args) {
  call('openssl', args.map(String));
}
