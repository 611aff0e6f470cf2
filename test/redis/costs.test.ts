// The ledger: what each request costs in commands, bytes, MACs, hashes and signatures, held against the committed table
// `costs/ledger.md`. Times are noisy and gate nothing; counts are exact. A row that rises fails, and so does one that falls: the
// table is always what is counted. Bytes may differ by 16.
//
// Where a difference is meant, GRANTRY_WRITE_LEDGER=1 writes the table, and the commit says why a row rises.

// First, before any module of src/ is loaded.
import './costs/process-work.ts';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PLAIN_CLIENTS } from './costs/clients.ts';
import type { Cost, Prepared } from './costs/costs.ts';
import { FULL_ROWS } from './costs/full-rows.ts';
import {
  type Cells,
  cellsOf,
  columnsAbove,
  commandsIn,
  differenceFrom,
  readLedger,
  rewritten,
  writeLedger,
} from './costs/ledger.ts';
import { PLAIN_ROWS } from './costs/plain-rows.ts';
import { ProviderWorld } from './costs/provider-visits.ts';
import { FULL_REFUSED_ROWS, REFUSED_ROWS } from './costs/refused-rows.ts';
import { SIGN_IN_ROWS } from './costs/sign-in-rows.ts';
import { CostWorld } from './costs/world.ts';
import { describeRedis } from './setup/servers.ts';

const REFUSED = [...REFUSED_ROWS, ...FULL_REFUSED_ROWS];
const isWriting = process.env.GRANTRY_WRITE_LEDGER === '1';

describe('a count beside its row', () => {
  const cost: Cost = {
    scripts: 1,
    commands: {},
    inside: { HGETALL: 1, HSET: 2 },
    sent: 1000,
    received: 300,
    roundTrips: 1,
    work: { HMACs: 2, hashes: 4, signed: 1, verified: 0, ciphers: 0, parsed: 1 },
  };
  const row = cellsOf(cost);
  const differs = (changes: Partial<Cost>) => differenceFrom(row, { ...cost, ...changes, places: [] }) !== undefined;

  it.each<[string, Partial<Cost>, boolean]>([
    ['equal → no difference', {}, false],
    ['16 bytes more → no difference', { sent: 1016 }, false],
    ['17 bytes more → a difference', { sent: 1017 }, true],
    ['17 bytes fewer → a difference', { received: 283 }, true],
    ['a command more → a difference', { inside: { GET: 1, HGETALL: 1, HSET: 2 } }, true],
    ['a call fewer of a command → a difference', { inside: { HGETALL: 1, HSET: 1 } }, true],
    ['a hash fewer → a difference', { work: { ...cost.work, hashes: 3 } }, true],
  ])('%s', (_name, changes, isDifferent) => {
    expect(differs(changes)).toBe(isDifferent);
  });
});

describeRedis('the cost of a request', () => {
  const ledger = readLedger();
  const counts = new Map<string, Cells>();
  const names = [...PLAIN_ROWS, ...SIGN_IN_ROWS, ...FULL_ROWS, ...REFUSED].map(({ name }) => name);
  let plain: CostWorld;
  let full: ProviderWorld;
  beforeAll(async () => {
    [plain, full] = await Promise.all([CostWorld.open({ clients: PLAIN_CLIENTS }), ProviderWorld.open()]);
  });
  afterAll(async () => {
    await plain.close();
    await full.close();
    if (!isWriting) return;
    // A row that did not run stays as it was.
    const rows = names.map((name) => [name, counts.get(name) ?? ledger.get(name)] as const);
    writeLedger(new Map(rows.filter((row): row is [string, Cells] => row[1] !== undefined)));
  });

  /** Counts a request, and compares it with its row. */
  async function expectAsInLedger(world: CostWorld, name: string, prepare: () => Promise<Prepared>): Promise<void> {
    const known = ledger.get(name);
    const counted = await world.count(prepare, (cost) => differenceFrom(known, cost) === undefined);
    counts.set(name, rewritten(counted, known));
    if (!isWriting) expect(differenceFrom(known, counted)).toBeUndefined();
  }

  it.each([...PLAIN_ROWS, ...SIGN_IN_ROWS, ...REFUSED_ROWS])('$name → as in its row', async ({ name, prepare }) => {
    await expectAsInLedger(plain, name, () => prepare(plain));
  });

  it.each([...FULL_ROWS, ...FULL_REFUSED_ROWS])('$name → as in its row', async ({ name, prepare }) => {
    await expectAsInLedger(full.world, name, () => prepare(full));
  });

  it('the ledger has no other rows', () => {
    if (!isWriting) expect([...ledger.keys()]).toEqual(names);
  });

  const cells = (name: string): Cells => counts.get(name) ?? ledger.get(name) ?? {};

  describe.each(REFUSED)('refused: $name', ({ name, insteadOf, exception }) => {
    it(`→ costs no more than ${insteadOf}, but for what the row names`, () => {
      expect(columnsAbove(cells(name), cells(insteadOf))).toEqual(exception?.costsMore ?? []);
    });

    it('→ writes nothing to Redis, but for what the row names', async () => {
      const { commands, 'inside scripts': inside } = cells(name);
      const writes = await plain.writesAmong([...commandsIn(commands), ...commandsIn(inside)]);
      expect(writes).toEqual(exception?.writes ?? []);
    });
  });
});
