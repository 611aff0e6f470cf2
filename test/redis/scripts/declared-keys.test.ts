// All scripts, run once: their assembled Lua is that of golden/, and every script declares each key that it touches, those of its own slot too, which a Cluster would let pass. MONITOR says
// what a script was called with and then what it did; all scripts are run, those for a Cluster as well.

import { readdirSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SHARDS } from '../../../src/oauth/values/shard.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { claimIssuer } from '../../../src/redis/data-loss/issuer-claim.ts';
import { ShardMarkers } from '../../../src/redis/data-loss/shard-markers.ts';
import { AlertOutbox } from '../../../src/redis/grants/alert-outbox.ts';
import type { PlainRead, Script } from '../../../src/redis/scripts/script.ts';
import { assembledLua } from '../../../src/redis/scripts/script-runner.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { allContracts } from '../../contracts/all-contracts.ts';
import { grantRedemptionContract } from '../../contracts/grant-redemption.ts';
import { grantRotationContract } from '../../contracts/grant-rotation.ts';
import { grantStatusContract } from '../../contracts/grant-status.ts';
import { issued, redeemed, redeemRequest, rotatedTo, rotateRequest, SHARD } from '../../contracts/sample-grants.ts';
import { watermarkStoreContract } from '../../contracts/token-stores.ts';
import { userStoreContract } from '../../contracts/user-store.ts';
import { until } from '../../until.ts';
import { connectTo, methodsOf } from '../setup/connect.ts';
import { redisWorlds } from '../setup/redis-world.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const SOURCES = join(import.meta.dirname, '../../../src/redis');
const keys = new RedisKeys('grantry:');

const DECLARED = 'a declared key';

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
  'person',
  'rate',
  'replay',
  'revoked',
  'session',
  'use',
  'user',
  'watermark',
];

function storeOf(script: string): string {
  return script.replace(/[A-Z].*$/, '');
}

/** A command without what differs each time: its declared keys and its times. */
function shapeOf({ declared }: Call, words: readonly string[]): readonly string[] {
  return words.map((word) => (declared.has(word) ? DECLARED : word.replace(/^\d{4,}$/, 'a number')));
}

/** What a script was called with, and the commands that it gave. */
interface Call {
  readonly declared: ReadonlySet<string>;
  readonly commands: (readonly string[])[];
}

/** The output of MONITOR, read when all is done: a process that is busy with it lets its own requests wait. */
function callsIn(told: string): readonly Call[] {
  const calls: Call[] = [];
  for (const [, source = '', text = ''] of told.matchAll(/^\+\S+ \[\d+ (\S+)\] (.*)\r$/gm)) {
    const words = [...text.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, word = '']) => word);
    if (source === 'lua') calls.at(-1)?.commands.push(words);
    else if (/^eval/i.test(words[0] ?? '')) {
      calls.push({ declared: new Set(words.slice(3, 3 + Number(words[2]))), commands: [] });
    }
  }
  return calls;
}

describeRedis('a script', () => {
  let server: RedisServer;
  let monitor: Socket;
  const told: Buffer[] = [];
  /** What has run, by name. */
  const run = new Map<string, Script | PlainRead>();
  beforeAll(async () => {
    server = await startRedis();
    monitor = connect(server.port, '127.0.0.1');
    monitor.on('data', (bytes) => told.push(bytes));
    monitor.write('MONITOR\r\n');
    await until('MONITOR prints', () => told.length > 0);
  });
  afterAll(async () => {
    monitor.destroy();
    await server.stop();
  });

  /** A connection that notes what is run; as one to a Cluster, or as the one it is. */
  function noted(real: ManagedConnection, allowsCrossSlot: boolean): ManagedConnection {
    const note = (script: Script | PlainRead) => run.set(script.name, script);
    return {
      ...methodsOf(real),
      allowsCrossSlot,
      run: (...action) => note(action[0].script) && real.run(...action),
      runDurably: (...action) => note(action[0].script) && real.runDurably(...action),
      recordForReplay: (...action) => note(action[0].script) && real.recordForReplay(...action),
    };
  }

  /** In a Cluster it is the same but for what reads watermarks or all shards. */
  const inCluster: typeof allContracts = (name, makeStores) => {
    for (const contract of [
      grantRedemptionContract,
      grantRotationContract,
      grantStatusContract,
      watermarkStoreContract,
      userStoreContract,
    ]) {
      contract(name, makeStores);
    }
  };

  describe.each([
    ['one server', true, allContracts],
    ['a Cluster', false, inCluster],
  ] as const)('as for %s', (name, allowsCrossSlot, contracts) => {
    const worlds = redisWorlds(
      () => server,
      (connection) => noted(connection, allowsCrossSlot),
    );
    beforeAll(() => server.command('FLUSHALL'));
    afterAll(() => worlds.close());
    contracts(`Redis, as ${name}`, worlds.makeStores);

    it('that belongs to no store runs, and one that is applied again', async () => {
      const real = await connectTo(server);
      const connection = noted(real, allowsCrossSlot);
      const { grants, sessions, consents } = redisStores({ connection, keys });
      await claimIssuer({ connection, keys }, { explicit: undefined, fallback: 'https://id.example' });
      const markers = new ShardMarkers({ connection, keys });
      const group = await markers.inspect(markers.groups[0] ?? SHARDS);
      await markers.restore(group, { watermark: 1, least: 1 });
      await markers.beat(group);
      await markers.raise(group, 2);

      const { grantId } = await rotatedTo(grants, 1);
      await grants.rotate(rotateRequest({ ...(await issued(grants)), grantId }, 0, { reuseGrace: 0 }));
      const outbox = new AlertOutbox({ connection, keys });
      for (const queued of await outbox.raised.list(SHARD)) {
        await outbox.raised.take(queued, 0);
        if (queued.alert !== undefined) await outbox.forward(queued.alert, true);
        await outbox.webhook.postpone(queued, 0);
        expect(await outbox.webhook.acknowledge(queued)).toBe(true);
        expect(await outbox.controller.acknowledge(queued)).toBe(false);
      }

      await sessions.end({ sessionId: `${SHARD}.${'x'.repeat(43)}`, sid: 'none', subject: 'usr_alice' });
      await consents.withdraw('usr_alice', 'uid-of-shop');
      expect(await real.replayRevocations('all')).toMatchObject({ errors: [] });
      await real.close();
    });

    it('that compensates an undelivered answer runs', async () => {
      // There is no acknowledgement: there are no replicas.
      const real = await connectTo(server, { acknowledgement: { replicas: 1, timeout: 1 } });
      const { grants } = redisStores({ connection: noted(real, allowsCrossSlot), keys });
      await expect(grants.redeem(redeemRequest(await issued(grants)))).rejects.toThrow();
      const others = await connectTo(server);
      const grant = await redeemed(redisStores({ connection: others, keys }).grants);
      await expect(grants.rotate(rotateRequest(grant, 0))).rejects.toThrow();
      await Promise.all([real.close(), others.close()]);
    });
  });

  it('has run, each there is', () => {
    const files = readdirSync(SOURCES, { encoding: 'utf8', recursive: true }).filter((file) => file.endsWith('.ts'));
    const texts = files.map((file) => readFileSync(join(SOURCES, file), 'utf8'));
    const names = texts.flatMap((text) => [...text.matchAll(/\bname: '(\w+)'/g)].map(([, name = '']) => name));
    expect(names.length).toBeGreaterThan(40);
    expect([...run.keys()].sort()).toEqual(names.sort());
  });

  it.each(STORES)('of %s is the Lua that golden/ shows', async (store) => {
    const scripts = [...run.values()].filter((script) => 'lua' in script && storeOf(script.name) === store) as Script[];
    const golden = scripts
      .sort((one, other) => (one.name < other.name ? -1 : 1))
      .map((script) => `-- ${script.name}\n${assembledLua(script).trim()}\n`);
    await expect(golden.join('\n')).toMatchFileSnapshot(`golden/${store}.lua`);
  });

  it('belongs to one of the golden files', () => {
    expect([...new Set([...run.keys()].map(storeOf))].sort()).toEqual(STORES);
  });

  it('has touched no key but those that it declares', async () => {
    await server.command('ECHO', 'that is all');
    await until('MONITOR has printed everything', () => String(Buffer.concat(told.slice(-2))).includes('that is all'));
    const calls = callsIn(Buffer.concat(told).toString('latin1'));
    const commands = new Set(
      calls.flatMap((call) => call.commands.map((words) => JSON.stringify(shapeOf(call, words)))),
    );
    const keysOfEach = await Promise.all([...commands].map((command) => keysOf(JSON.parse(command))));
    const all = keysOfEach.flat();
    expect(all.filter((key) => key === DECLARED).length).toBeGreaterThan(100);
    expect(all.filter((key) => key !== DECLARED)).toEqual([]);
  });

  /** The keys among the words of a command, as Redis itself names them. */
  async function keysOf(words: readonly string[]): Promise<readonly string[]> {
    if (words.length === 1) return [];
    try {
      return (await server.command('COMMAND', 'GETKEYS', ...words)) as string[];
    } catch (error) {
      if (/The command has no key arguments/.test(String(error))) return [];
      throw error;
    }
  }
});
