// The certificates of `grantry dev --mtls-port` in `.grantry/mtls/`: an authority, and what it issues to the listener and
// to a client. Each file is made once; one that is there is kept.

import { isIP } from 'node:net';
import type { Clock, Random } from '../oauth/ports/ports.ts';
import type { CertificateWishes } from './issued-certificate.ts';
import { StateError } from './state-error.ts';
import type { StateFiles } from './state-files.ts';

const AUTHORITY = 'grantry dev CA';
/** The names of the client certificate, for manifests. */
export const CLIENT_DNS_NAME = 'client.localhost';
const CLIENT_COMMON_NAME = 'client';
export const CLIENT_SUBJECT = `CN=${CLIENT_COMMON_NAME}`;

export interface CertificateOptions {
  readonly state: StateFiles;
  /** The address that the listener is bound to. */
  readonly host: string;
  readonly clock: Clock;
  readonly random: Random;
}

/** The paths of the files, each beside its key. */
export interface CertificateFiles {
  readonly authority: string;
  readonly server: { readonly certificate: string; readonly key: string };
  readonly client: { readonly certificate: string; readonly key: string };
}

/** Makes the files that are missing. @throws StateError where the folder cannot be written */
export async function provideCertificates(options: CertificateOptions): Promise<CertificateFiles> {
  const { state, host } = options;
  const ips = ['127.0.0.1', '::1', ...(isIP(host) === 0 ? [] : [host])];
  const dns = ['localhost', ...(isIP(host) === 0 ? [host] : [])];
  const keyOf = (name: string) => makeKey(state, name);
  const authority = { commonName: AUTHORITY, key: await keyOf('ca') };
  const issue = async (name: string, wishes: CertificateWishes) => {
    const parts = { key: await keyOf(name), issuer: authority };
    await makeCertificate(options, name, wishes, parts);
  };
  await issue('ca', { commonName: AUTHORITY, usage: 'authority' });
  await issue('server', { commonName: 'localhost', usage: 'server', dns: [...new Set(dns)], ips: [...new Set(ips)] });
  await issue('client', { commonName: CLIENT_COMMON_NAME, usage: 'client', dns: [CLIENT_DNS_NAME] });
  return certificateFiles(state);
}

/** The paths of the files, whether or not they are there. @throws StateError where the folder cannot be written */
function certificateFiles(state: StateFiles): CertificateFiles {
  const pair = (name: string) => ({ certificate: pathOf(state, `${name}.crt`), key: pathOf(state, `${name}.key`) });
  return { authority: pathOf(state, 'ca.crt'), server: pair('server'), client: pair('client') };
}

function pathOf(state: StateFiles, name: string): string {
  const path = state.fileOf(`mtls/${name}`);
  if (path !== undefined) return path;
  throw new StateError(state.path, `cannot be written (${state.memoryReason}); --mtls-port keeps certificates there`);
}

async function makeKey(state: StateFiles, name: string): Promise<string> {
  // Imported only where it is needed: the schemas of certificates cost 40 ms.
  const { generateKeyPem } = await import('./issued-certificate.ts');
  return await state.keep(`mtls/${name}.key`, generateKeyPem);
}

async function makeCertificate(
  { state, clock, random }: CertificateOptions,
  name: string,
  wishes: CertificateWishes,
  parts: { readonly key: string; readonly issuer: { readonly commonName: string; readonly key: string } },
): Promise<void> {
  const { issueCertificate } = await import('./issued-certificate.ts');
  const made = { ...parts, serial: random.bytes(16), now: new Date(clock.now()) };
  await state.keep(`mtls/${name}.crt`, () => issueCertificate(wishes, made));
}
