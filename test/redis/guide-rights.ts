// What the guide lets a Redis user do for grantry, word by word.

import { readFileSync } from 'node:fs';

const guide = readFileSync(new URL('../../docs/guides/redis.md', import.meta.url), 'utf8');

/**
 * The rights as ACL SETUSER takes them.
 * @param prefix of the keys
 * @throws Error when the guide has no such line
 */
export function guideRights(prefix = 'grantry:'): readonly string[] {
  const [, rights] = /^ACL SETUSER grantry on >\S+ (.*)$/m.exec(guide) ?? [];
  if (rights === undefined) throw new Error('the guide says nothing of rights');
  return rights.replace('~grantry:', `~${prefix}`).split(' ');
}
