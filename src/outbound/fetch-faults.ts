// What a log line says of a call to a host that a client names. A message of a socket or of TLS could hold what the host sent, and is in
// none.

import { FetchFailedError } from './guarded-fetch.ts';
import { UnknownNameError } from './name-lookup.ts';

/** Members of a log line; undefined ones are left out. */
export interface FaultMembers {
  /** The code of what a socket, a lookup or TLS threw. */
  readonly cause: string | undefined;
  /** What to do, where that is known. */
  readonly detail: string | undefined;
}

/** The members for a call that failed. */
export function faultMembers(error: unknown): FaultMembers {
  const cause = error instanceof Error ? (error.cause ?? error) : undefined;
  const code = (cause as NodeJS.ErrnoException | undefined)?.code;
  return { cause: typeof code === 'string' ? code : undefined, detail: detailOf(error, cause) };
}

function detailOf(error: unknown, cause: unknown): string | undefined {
  if (cause instanceof UnknownNameError) return cause.message;
  const isRefused = error instanceof FetchFailedError && error.fault === 'address_refused';
  return isRefused ? 'each address of the host must be public or in GRANTRY_FETCH_NETWORKS' : undefined;
}
