// What a request with a valid access token may do, and on whose behalf.

import { type AccessClaims, scopeOf } from '../oauth/resource/access-token.ts';
import type { JsonObject } from '../oauth/values/jws.ts';

/** An access that was granted. Frozen, and so are its claims: requests with the same token share them. */
export interface Access {
  /** `sub`: the person, or the client itself where no person is involved. */
  readonly subject: string;
  readonly clientId: string;
  readonly scope: readonly string[];
  /** `jti` */
  readonly tokenId: string;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
  /** One per consent of a person at a client; undefined where no person is involved. */
  readonly grantId: string | undefined;
  /** When the person signed in, epoch milliseconds. */
  readonly authTime: number | undefined;
  /** RFC 9396 §9; undefined for a token without. */
  readonly authorizationDetails: readonly JsonObject[] | undefined;
  /** Every claim as sent. */
  readonly claims: AccessClaims;
  /** Headers that the answer to the request must have, names in lower case. The adapters set them. */
  readonly responseHeaders: Readonly<Record<string, string>>;
}

/** The access by these claims. */
export function accessFrom(claims: AccessClaims, responseHeaders: Readonly<Record<string, string>>): Access {
  const { grant_id: grantId, auth_time: authTime, authorization_details: details } = claims;
  return Object.freeze({
    subject: claims.sub,
    clientId: claims.client_id,
    scope: Object.freeze(scopeOf(claims)),
    tokenId: claims.jti,
    expiresAt: claims.exp * 1000,
    grantId: typeof grantId === 'string' ? grantId : undefined,
    authTime: typeof authTime === 'number' ? authTime * 1000 : undefined,
    authorizationDetails: Array.isArray(details) ? details.filter(isObject) : undefined,
    claims,
    responseHeaders,
  });
}

/** The same value, frozen at every depth. */
export function frozen<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null) return value;
  for (const member of Object.values(value)) frozen(member);
  return Object.freeze(value);
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
