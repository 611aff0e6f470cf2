// Every script once, as a Redis user that may do anything, on each form of Redis. Their assembled Lua is that of golden/.
// What a script does is held by the store contracts, in `../stores/contracts.test.ts`.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { Script } from '../../../src/redis/scripts/script.ts';
import { assembledLua } from '../../../src/redis/scripts/script-runner.ts';
import { startCluster } from '../setup/redis-cluster.ts';
import { redisSuite, type Started } from '../setup/redis-suite.ts';
import { startReplicated } from '../setup/replicated-redis.ts';
import { describeRedis, startRedis } from '../setup/servers.ts';
import { runEveryScript, type ScriptsRun } from './run-every-script.ts';

const SOURCES = join(import.meta.dirname, '../../../src/redis');

const FORMS: Readonly<Record<string, () => Promise<Started>>> = {
  'one Redis server': startRedis,
  'a Redis Cluster': startCluster,
  'Redis under Sentinels': startReplicated,
};

/** The golden files, by the first word of the names of their scripts. `npm test -- test/redis/scripts -u` writes them again. */
const STORES = [
  'access',
  'alert',
  'consent',
  'grant',
  'interaction',
  'issuer',
  'marker',
  'outbox',
  'rate',
  'replay',
  'revoked',
  'session',
  'watermark',
];

function storeOf(script: string): string {
  return script.replace(/[A-Z].*$/, '');
}

const runOn = new Map<string, ScriptsRun>();

for (const [form, start] of Object.entries(FORMS)) {
  describeRedis(`every script on ${form}`, () => {
    const redis = redisSuite(start);

    it('runs', async () => {
      runOn.set(form, await runEveryScript(redis.connect, redis.keys));
    });
  });
}

describeRedis('a script', () => {
  const all = () => new Map([...runOn.values()].flatMap((run) => [...run]));

  it('has run, each there is; under Sentinels each that runs on one server', () => {
    const files = readdirSync(SOURCES, { encoding: 'utf8', recursive: true }).filter((file) => file.endsWith('.ts'));
    const texts = files.map((file) => readFileSync(join(SOURCES, file), 'utf8'));
    const names = texts.flatMap((text) => [...text.matchAll(/\bname: '(\w+)'/g)].map(([, name = '']) => name));
    expect(names.length).toBeGreaterThan(40);
    expect([...all().keys()].sort()).toEqual(names.sort());
    const [one, , sentinels] = Object.keys(FORMS).map((form) => [...(runOn.get(form)?.keys() ?? [])].sort());
    expect(sentinels).toEqual(one);
  });

  it.each(STORES)('of %s is the Lua that golden/ shows', async (store) => {
    const scripts = [...all().values()].filter(
      (script) => 'lua' in script && storeOf(script.name) === store,
    ) as Script[];
    const golden = scripts
      .sort((one, other) => (one.name < other.name ? -1 : 1))
      .map((script) => `-- ${script.name}\n${assembledLua(script).trim()}\n`);
    await expect(golden.join('\n')).toMatchFileSnapshot(`golden/${store}.lua`);
  });

  it('belongs to one of the golden files', () => {
    expect([...new Set([...all().keys()].map(storeOf))].sort()).toEqual(STORES);
  });
});
