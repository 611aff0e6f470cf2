// Assertions of clients as their libraries make them, right unless a test changes a claim or the header.

import { randomUUID } from 'node:crypto';
import type { AssertionSettings } from '../../../src/oauth/registry/client.ts';
import { sign, type TestKey } from '../values/signed-tokens.ts';

export const JWT_BEARER = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

/** The settings of a client with these keys. */
export function assertedBy(keys: readonly TestKey[], settings: Partial<AssertionSettings> = {}): AssertionSettings {
  const algorithms = [...new Set(keys.map(({ algorithm }) => algorithm))];
  return { keys: keys.map(({ key }) => key), algorithms, acceptTokenEndpointAudience: false, ...settings };
}

export interface AssertedParty {
  readonly clientId: string;
  readonly issuer: string;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** Claims of an assertion for a minute. */
export function claimsOf({ clientId, issuer, now }: AssertedParty): Readonly<Record<string, unknown>> {
  const seconds = now / 1000;
  return { iss: clientId, sub: clientId, aud: issuer, jti: randomUUID(), iat: seconds, exp: seconds + 60 };
}

/** @param changes to the claims; undefined leaves one out */
export function assertionOf(
  key: Pick<TestKey, 'algorithm' | 'privateKey'>,
  party: AssertedParty,
  changes: object = {},
  header: object = {},
): Promise<string> {
  return sign(key, { ...claimsOf(party), ...changes }, header);
}

/** The form parameters that carry it. */
export function asserted(assertion: string): Record<string, string> {
  return { client_assertion_type: JWT_BEARER, client_assertion: assertion };
}
