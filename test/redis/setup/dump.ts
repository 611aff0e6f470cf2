// Everything a Redis holds, as text, and the secrets that must not be in it.

import type { RedisServer } from './servers.ts';

/** All keys that begin so, each with all of its values. */
export async function dump(server: Pick<RedisServer, 'command'>, prefix = ''): Promise<string> {
  const lines: string[] = [];
  let cursor = '0';
  do {
    const page = await server.command('SCAN', cursor, 'MATCH', `${prefix}*`, 'COUNT', 1000);
    const [next, keys] = page as [string, string[]];
    for (const key of keys) lines.push(`${key} ${JSON.stringify(await contentOf(server, key))}`);
    cursor = next;
  } while (cursor !== '0');
  return lines.sort().join('\n');
}

async function contentOf(server: Pick<RedisServer, 'command'>, key: string): Promise<unknown> {
  const type = await server.command('TYPE', key);
  switch (type) {
    case 'string':
      return server.command('GET', key);
    case 'hash':
      return server.command('HGETALL', key);
    case 'zset':
      return server.command('ZRANGE', key, 0, -1, 'WITHSCORES');
    case 'none':
      return undefined;
    default:
      throw new Error(`${key} is a ${type}, which is not documented`);
  }
}

/** The secrets among these that a text holds, also a part of one that would be enough to make it. */
export function secretsIn(text: string, secrets: Iterable<string>): readonly string[] {
  return [...secrets].filter(
    (secret) => text.includes(secret) || secretParts(secret).some((part) => text.includes(part)),
  );
}

/** Handles are made of parts, some of them names (shard, grant, generation); JWTs of parts, of which one is the signature. */
function secretParts(secret: string): readonly string[] {
  const [kind, , family = '', ...rest] = secret.split('.');
  if (kind === 'ac1' || kind === 'rt1') return [family, ...rest.slice(-1)];
  if (kind === 'at1') return rest.slice(-1);
  return secret.split('.').slice(-1);
}
