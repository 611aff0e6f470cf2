// What the guide lets a Redis user do for grantry, word by word.

import { readFileSync } from 'node:fs';
import type { RedisServer } from './servers.ts';

const guide = readFileSync(new URL('../../../docs/guides/redis-access.md', import.meta.url), 'utf8');

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

/** Makes a user of these servers who has the rights of the guide and no other; what it signs in with. */
export async function guideUser(
  servers: readonly RedisServer[],
  prefix?: string,
): Promise<{ readonly username: string; readonly password: string }> {
  const [username, password] = ['grantry', 'secret'];
  for (const server of servers) {
    await server.command('ACL', 'SETUSER', username, 'on', `>${password}`, ...guideRights(prefix));
  }
  return { username, password };
}
