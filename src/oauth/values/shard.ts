// The 256 virtual shards of a distributed store. All data that one action touches is in one shard. This file maps ids
// and people to shards, for the handles that name a grant and for the stores that keep it.

import { hash } from 'node:crypto';

/** `000` to `255`. */
export const SHARDS: readonly string[] = Array.from({ length: 256 }, (_, shard) => String(shard).padStart(3, '0'));

/** The shard that a grant's, an opaque token's or an alert's id begins with. @throws TypeError */
export function shardOf(id: string): string {
  const shard = SHARDS[Number(id.slice(0, 3))];
  if (shard === undefined || !id.startsWith(`${shard}.`)) throw new TypeError('the id has no shard');
  return shard;
}

const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/**
 * By the first byte of a digest in base64url: the first character, and of the second the two upper bits.
 * @throws TypeError
 */
export function shardOfDigest(digest: string): string {
  const byte = BASE64URL.indexOf(digest.charAt(0)) * 4 + (BASE64URL.indexOf(digest.charAt(1)) >> 4);
  const shard = SHARDS[byte];
  if (shard === undefined) throw new TypeError('this is no digest in base64url');
  return shard;
}

/** The shard of a person's grants and of the watermarks that end them. */
export function shardOfPerson(subject: string): string {
  return shardOfDigest(hash('sha256', subject, 'base64url'));
}
