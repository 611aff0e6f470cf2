// What a JWT access token of ours says (RFC 9068 §2.2), and which client object it was issued to.

import { hash } from 'node:crypto';
import type { Random } from '../ports/ports.ts';
import type { Client } from '../registry/client.ts';
import { randomId } from '../values/random-id.ts';

/** The claims of a JWT access token of ours (RFC 9068 §2.2). */
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
}

/** The `jti` of a new token of this client. */
export function newTokenId(client: Client, random: Random): string {
  return `${tagOf(client)}.${randomId(random, 20)}`;
}

/**
 * Whether a token was issued to this very client object. Its client id alone does not say so: an id can be given to another
 * object, which must not inherit, see or revoke the tokens of the one before.
 */
export function isIssuedTo(client: Client, { client_id, jti }: AccessTokenClaims): boolean {
  return client_id === client.clientId && jti.startsWith(`${tagOf(client)}.`);
}

const TAGS = new WeakMap<Client, string>();

/** 66 bits of the uid's hash: enough to tell objects apart, and no uid for whoever reads a token. */
function tagOf(client: Client): string {
  const known = TAGS.get(client);
  if (known !== undefined) return known;
  const tag = hash('sha256', `grantry-client-tag-v1\0${client.uid}`, 'base64url').slice(0, 11);
  TAGS.set(client, tag);
  return tag;
}
