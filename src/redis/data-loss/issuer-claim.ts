// Binds a Redis to one issuer: the first replica of grantry stores it, and every other one has to agree.

import type { StoreParts } from '../connection/store-parts.ts';
import type { Script } from '../scripts/script.ts';

/** Answers the stored issuer, after storing ARGV[2] if there was none. */
const CLAIM: Script = {
  name: 'issuerClaim',
  keys: 1,
  lua: `
redis.call('SET', KEYS[1], ARGV[2], 'NX')
return redis.call('GET', KEYS[1])
`,
};

/** Two deployments with different issuers were pointed at the same Redis. */
export class IssuerConflictError extends Error {
  readonly stored: string;
  readonly configured: string;

  constructor(stored: string, configured: string) {
    super(
      `GRANTRY_ISSUER is ${configured}, but the Redis of GRANTRY_REDIS_URL holds the state of ${stored}: ` +
        'set the same issuer, or give this deployment a GRANTRY_REDIS_PREFIX, a database or a Redis of its own',
    );
    this.name = 'IssuerConflictError';
    this.stored = stored;
    this.configured = configured;
  }
}

/**
 * The issuer of the deployment: the stored one, which an explicit one has to equal; the first process stores its own.
 * @param issuer.explicit GRANTRY_ISSUER, if it is set
 * @param issuer.fallback stored where no issuer is stored and none is set
 * @throws IssuerConflictError, StoreUnavailableError
 */
export async function claimIssuer(
  { connection, keys }: StoreParts,
  { explicit, fallback }: { explicit: string | undefined; fallback: string },
): Promise<string> {
  const stored = String(await connection.run({ script: CLAIM, keys: [keys.issuer()], args: [explicit ?? fallback] }));
  if (explicit !== undefined && explicit !== stored) throw new IssuerConflictError(stored, explicit);
  return stored;
}
