// The messages for a person when Redis cannot be used: at the start they name the variable, the fault and the remedy;
// later the part of Redis that is unavailable.

import type { ManagedConnection } from '../../redis/connection/connection.ts';
import type { RedisTarget } from '../../redis/link/redis-url.ts';
import { NO_SENTINEL } from '../../redis/topology/sentinel-connector.ts';
import type { RedisSettings } from '../config/redis-config.ts';
import { StartError } from '../config/start-error.ts';

/** The address of Redis, for messages. */
export function describeTarget(target: RedisTarget): string {
  const list = (addresses: readonly { readonly host: string; readonly port: number }[]) =>
    addresses.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`).join(', ');
  switch (target.form) {
    case 'standalone':
      return list([target.address]);
    case 'sentinel':
      return `the primary ${target.primary} of the Sentinels ${list(target.sentinels)}`;
    case 'cluster':
      return `the Cluster at ${list(target.seeds)}`;
  }
}

type Primaries = ManagedConnection['primaries'];

/** The primaries that are unavailable while others of the Cluster answer, for messages; undefined where none or all are. */
export function describeAwayPart(primaries: Primaries): string | undefined {
  const unavailable = primaries.filter(({ isUp }) => !isUp);
  if (unavailable.length === 0 || unavailable.length === primaries.length) return undefined;
  return `${unavailable.map(({ name }) => name).join(', ')} of the Cluster`;
}

/** The effect of a clock skew. @param skew milliseconds by which the local clock is ahead; negative where it is behind */
export function describeSkew(skew: number): string {
  const seconds = (Math.abs(skew) / 1000).toFixed(1);
  if (skew > 0) {
    return `the clock here is ${seconds} s ahead of that of Redis, synchronize them: what was revoked within that time before Redis loses its state is good again`;
  }
  return `the clock here is ${seconds} s behind that of Redis, synchronize them: where Redis is new or loses its state, tokens of machines and sign-ins made here are void for that time`;
}

/** Why Redis, or some of its primaries, cannot be used. @param cause the last error of the connection, or of an answer */
export function unusable(redis: RedisSettings, primaries: Primaries, cause: unknown): StartError {
  const place = describeAwayPart(primaries) ?? describeTarget(redis.target);
  return new StartError(sentence(redis, place, reasons(cause)), 1);
}

function sentence(settings: RedisSettings, place: string, reason: string): string {
  const { target, passwordFile, sentinelPasswordFile } = settings;
  // The Sentinels have a password of their own, and no user.
  const isOfSentinels = reason.startsWith(NO_SENTINEL);
  const [file, named, server] = isOfSentinels
    ? ['GRANTRY_REDIS_SENTINEL_PASSWORD_FILE', sentinelPasswordFile, `a Sentinel of ${place}`]
    : ['GRANTRY_REDIS_PASSWORD_FILE', passwordFile, `Redis at ${place}`];
  const user = variableOfUser(settings);
  const andUser = user === undefined || isOfSentinels ? '' : ` and ${user}`;
  if (reason.includes('NOAUTH')) {
    if (named !== undefined) return `${file}: ${server} asks for a password, and the file is empty: put it there`;
    return `${file} is not set, but ${server} asks for a password: put it into a file and name it there`;
  }
  if (/WRONGPASS|invalid username-password|invalid password/i.test(reason)) {
    return `${file}: ${server} refuses this password: correct the file${andUser}`;
  }
  if (reason.includes('NOPERM')) {
    return `${user ?? 'GRANTRY_REDIS_USERNAME'}: the user may not do at ${place} what grantry needs: correct its ACL (${reason})`;
  }
  if (/certificate|SSL|TLS|wrong version number|CERT_/i.test(reason)) {
    return `GRANTRY_REDIS_URL: the TLS handshake with ${place} failed (${reason}): correct GRANTRY_REDIS_CA_FILE, or the scheme`;
  }
  if (reason.includes('DB index')) {
    return `GRANTRY_REDIS_URL: Redis at ${place} has no such database (${reason}): name another, or raise its setting databases`;
  }
  if (/^[A-Z]{2,} /.test(reason)) {
    return `GRANTRY_REDIS_URL: Redis at ${place} answers and refuses what grantry asks for (${reason}): mend that there, or name another Redis`;
  }
  const tls = target.tls ? '; one without TLS needs redis for rediss' : '; one with TLS needs rediss for redis';
  return `GRANTRY_REDIS_URL: no Redis answers at ${place} (${reason}): start it or correct the address${tls}`;
}

/** The variable that names the user, if any does. */
function variableOfUser({ username, usernameFile }: RedisSettings): string | undefined {
  if (usernameFile !== undefined) return 'GRANTRY_REDIS_USERNAME_FILE';
  return username && 'GRANTRY_REDIS_USERNAME';
}

/** The message of the innermost cause of an error. */
function reasons(cause: unknown): string {
  const words: string[] = [];
  for (let error = cause; error instanceof Error && words.length < 4; error = error.cause) {
    const { code } = error as NodeJS.ErrnoException;
    words.unshift(error.message || (code ?? error.name));
  }
  return words[0] ?? 'no answer in time';
}
