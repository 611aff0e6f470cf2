// Where the API server is and as whom it is asked: what a connection needs to know, and the answer of a pod to that.
// kubeconfig.ts has the answer of a person's machine.

import { readFile } from 'node:fs/promises';
import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import type { Clock } from '../../oauth/ports/ports.ts';

/** How a server proves itself, and how we may by certificate. Two equal ones can share connections. */
export interface TlsFiles {
  readonly ca?: Buffer | undefined;
  readonly cert?: Buffer | string | undefined;
  readonly key?: Buffer | string | undefined;
  readonly servername?: string | undefined;
  readonly rejectUnauthorized?: boolean | undefined;
}

export interface Credentials {
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: TlsFiles;
  /** Who asks, for messages: `system:serviceaccount:<namespace>:<name>`, or what the kubeconfig calls it. */
  readonly user: string;
}

export interface ClusterAccess {
  /** `https://host:port`, perhaps with a path; no slash at its end. */
  readonly server: string;
  /** What the next request is sent with. Throws an Error whose message says what is missing; try again. */
  readonly credentials: () => Promise<Credentials>;
  /** Called when the API server did not believe them: the next `credentials` are read anew. */
  readonly renew: () => void;
}

const SERVICE_ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount';
/** The kubelet replaces a token long before it ends. */
const REREAD_MILLISECONDS = 60_000;

/**
 * A pod's own ServiceAccount.
 * @param options.host `KUBERNETES_SERVICE_HOST`
 * @param options.port `KUBERNETES_SERVICE_PORT`
 * @param options.folder where the token is mounted, unless in the usual place
 */
export function inClusterAccess(options: {
  readonly host: string;
  readonly port: string;
  readonly clock: Clock;
  readonly folder?: string;
}): ClusterAccess {
  const { host, port, clock, folder = SERVICE_ACCOUNT_FOLDER } = options;
  const cached = reread(clock, async () => {
    const [token, ca] = await Promise.all([readText(join(folder, 'token')), readBytes(join(folder, 'ca.crt'))]);
    const user = subjectOf(token) ?? 'the ServiceAccount of this pod';
    return { headers: { authorization: `Bearer ${token}` }, tls: { ca }, user };
  });
  return {
    server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
    ...cached,
  };
}

/** Reads credentials when they are asked for and older than a minute. Calls that meet share one reading. */
export function reread(clock: Clock, read: () => Promise<Credentials>): Pick<ClusterAccess, 'credentials' | 'renew'> {
  let latest: Promise<Credentials> | undefined;
  let readAt = 0;
  const renew = () => {
    latest = undefined;
  };
  const credentials = () => {
    if (latest === undefined || clock.now() - readAt >= REREAD_MILLISECONDS) {
      readAt = clock.now();
      const reading = read();
      latest = reading;
      reading.catch(() => latest === reading && renew());
    }
    return latest;
  };
  return { credentials, renew };
}

/** A file's text without white space around it. Throws an Error that names the file and says why. */
export async function readText(path: string): Promise<string> {
  return (await readBytes(path)).toString('utf8').trim();
}

/** Throws an Error that names the file and says why. */
export async function readBytes(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    throw new Error(`${path} cannot be read: ${(error as NodeJS.ErrnoException).code}`);
  }
}

/** Whom a token speaks for, by its own words: for messages only. Undefined when it is no JWT. */
export function subjectOf(token: string): string | undefined {
  try {
    const payload: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
    const { sub } = payload as { readonly sub?: unknown };
    return typeof sub === 'string' ? sub.slice(0, 253) : undefined;
  } catch {
    return undefined;
  }
}
