// The claims of a JWT access token (RFC 9068 §2.2), and the tag in its `jti` that binds it to one client object.

import { hash } from 'node:crypto';
import type { Random } from '../ports/ports.ts';
import type { Client } from '../registry/client.ts';
import type { ConfirmationClaim } from '../values/confirmation.ts';
import { randomId } from '../values/random-id.ts';

/** The claims of a JWT access token that this server issues (RFC 9068 §2.2). */
export interface AccessTokenClaims {
  readonly iss: string;
  readonly sub: string;
  readonly aud: string;
  readonly client_id: string;
  readonly iat: number;
  readonly exp: number;
  /** `<tag of the client object>.<160 random bits>`: see {@link isIssuedTo}. */
  readonly jti: string;
  readonly scope: string;
  readonly auth_time?: number;
  readonly grant_id?: string;
  readonly cnf?: ConfirmationClaim;
}

/** The `jti` of a new token of this client. */
export function newTokenId(client: Client, random: Random): string {
  return `${tagOf(client)}.${randomId(random, 20)}`;
}

/**
 * Whether a token was issued to this very client object. The client id alone does not prove it: a later object with the
 * same id must not inherit, see or revoke the tokens of the earlier one.
 */
export function isIssuedTo(client: Client, { client_id, jti }: AccessTokenClaims): boolean {
  return client_id === client.clientId && jti.startsWith(`${tagOf(client)}.`);
}

const TAGS = new WeakMap<Client, string>();

/** 66 bits of the uid's hash: enough to distinguish objects, without disclosing the uid to readers of a token. */
function tagOf(client: Client): string {
  const known = TAGS.get(client);
  if (known !== undefined) return known;
  const tag = hash('sha256', `grantry-client-tag-v1\0${client.uid}`, 'base64url').slice(0, 11);
  TAGS.set(client, tag);
  return tag;
}
