// The address of the API server and the credentials for it, and where a pod gets both. kubeconfig.ts reads them from a
// kubeconfig.

import { readFile } from 'node:fs/promises';
import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import type { Clock } from '../../oauth/ports/ports.ts';

/** The CA of the server and the client certificate. Requests with equal values can share connections. */
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
  /** The user, for messages: `system:serviceaccount:<namespace>:<name>`, or its name in the kubeconfig. */
  readonly user: string;
}

export interface ClusterAccess {
  /** `https://host:port`, perhaps with a path; no slash at its end. */
  readonly server: string;
  /** The credentials of the next request. Throws an Error that names what is missing; a later call may succeed. */
  readonly credentials: () => Promise<Credentials>;
  /** Called after 401: the next call of `credentials` reads them again. */
  readonly renew: () => void;
}

const SERVICE_ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount';
/** The kubelet replaces a token long before it expires. */
const REREAD_MILLISECONDS = 60_000;

/**
 * A pod's own ServiceAccount.
 * @param options.host `KUBERNETES_SERVICE_HOST`
 * @param options.port `KUBERNETES_SERVICE_PORT`
 * @param options.folder where the token is mounted; by default the standard path
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

/** Caches credentials for a minute. Concurrent calls share one read; a failed read is not cached. */
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

/** A file's text, trimmed. Throws an Error that names the file and the cause. */
export async function readText(path: string): Promise<string> {
  return (await readBytes(path)).toString('utf8').trim();
}

/** Throws an Error that names the file and the cause. */
export async function readBytes(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    throw new Error(`${path} cannot be read: ${(error as NodeJS.ErrnoException).code}`);
  }
}

/** The unverified `sub` of a token, for messages only; undefined when it is no JWT. */
export function subjectOf(token: string): string | undefined {
  try {
    const payload: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
    const { sub } = payload as { readonly sub?: unknown };
    return typeof sub === 'string' ? sub.slice(0, 253) : undefined;
  } catch {
    return undefined;
  }
}
