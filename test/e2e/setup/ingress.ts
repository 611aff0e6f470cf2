// TLS in front of Services, at addresses that lead to them from a pod, from the API server and from this machine: node ports
// of a pod that stands for an ingress controller, with a certificate for the address of the node.

import type { MadeCertificate } from '../../client-certificates.ts';
import { CertificateMaker } from '../../client-certificates.ts';
import { apply, get, kubectl, waitReady } from './kubectl.ts';
import { scriptPod } from './pods.ts';

const NAME = 'tls-front';
const FIRST_PORT = 8443;

export interface Ingress {
  /** An https origin for each Service, in their order. */
  readonly origins: readonly string[];
  /** The address that it connects from. */
  readonly address: string;
  /** Its pods, as in `matchLabels`. */
  readonly labels: Readonly<Record<string, string>>;
  /** What signed its certificate. */
  readonly authority: MadeCertificate;
  /** Removes the files of this machine; the pod ends with its namespace. */
  forget(): void;
}

/** Starts it in a namespace. @param upstreams http origins, which need not answer yet */
export async function startIngress(namespace: string, upstreams: readonly string[]): Promise<Ingress> {
  const maker = new CertificateMaker();
  const host = await nodeAddress();
  const authority = maker.authority();
  const extensions = [`subjectAltName=IP:${host}`];
  const { certificate, key } = maker.make({ subject: `/CN=${host}`, issuer: authority, extensions });
  const labels = { app: NAME };
  const environment = { UPSTREAMS: upstreams.join(' '), FIRST_PORT: String(FIRST_PORT) };
  const spec = await scriptPod({ namespace, name: NAME, script: 'tls-front.mts', secretName: NAME, environment });
  const ports = upstreams.map((_, index) => ({ name: `tls-${index}`, port: FIRST_PORT + index }));
  const metadata = { namespace, name: NAME };
  await apply(
    {
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'kubernetes.io/tls',
      metadata,
      stringData: { 'tls.crt': certificate, 'tls.key': key },
    },
    { apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, labels }, spec },
    { apiVersion: 'v1', kind: 'Service', metadata, spec: { type: 'NodePort', selector: labels, ports } },
  );
  await waitReady(namespace, `pod/${NAME}`);
  const service = await get('service', NAME, namespace);
  const nodePorts: readonly { readonly nodePort: number }[] = service.spec.ports;
  return {
    origins: nodePorts.map(({ nodePort }) => `https://${host}:${nodePort}`),
    address: String((await get('pod', NAME, namespace)).status.podIP),
    labels,
    authority,
    forget: () => maker.remove(),
  };
}

async function nodeAddress(): Promise<string> {
  const path = 'jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}';
  const [address = ''] = (await kubectl('get', 'nodes', '-o', path)).split(' ');
  return address;
}
