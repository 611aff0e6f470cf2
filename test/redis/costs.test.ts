// The ledger: what each request costs in commands, bytes, MACs, hashes and signatures, held against the committed table
// `costs/ledger.md`. Times are noisy and gate nothing; counts are exact. A row that rises fails, and so does one that falls: the
// table is always what is counted. Bytes may differ by 16.
//
// Where a difference is meant, GRANTRY_WRITE_LEDGER=1 writes the table, and the commit says why a row rises.

// First, before any module of src/ is loaded.
import './costs/process-work.ts';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { countUntil } from './costs/costs.ts';
import {
  type Cells,
  columnsAbove,
  commandsIn,
  differenceFrom,
  type Row,
  readLedger,
  rewritten,
  writeLedger,
} from './costs/ledger.ts';
import { PLAIN_ROWS } from './costs/plain-rows.ts';
import { REFUSED_ROWS } from './costs/refused-rows.ts';
import { SIGN_IN_ROWS } from './costs/sign-in-rows.ts';
import { CostWorld } from './costs/world.ts';
import { describeRedis } from './setup/servers.ts';

const ROWS: readonly Row[] = [...PLAIN_ROWS, ...SIGN_IN_ROWS, ...REFUSED_ROWS];
const isWriting = process.env.GRANTRY_WRITE_LEDGER === '1';

describeRedis('the cost of a request', () => {
  const ledger = readLedger();
  const counts = new Map<string, Cells>();
  let world: CostWorld;
  beforeAll(async () => {
    world = await CostWorld.open();
  });
  afterAll(async () => {
    await world.close();
    if (!isWriting) return;
    // A row that did not run stays as it was.
    const rows = ROWS.map(({ name }) => [name, counts.get(name) ?? ledger.get(name)] as const);
    writeLedger(new Map(rows.filter((row): row is [string, Cells] => row[1] !== undefined)));
  });

  it.each(ROWS)('$name → as in its row of the ledger', async ({ name, prepare }) => {
    const known = ledger.get(name);
    const counted = await countUntil(
      (cost) => differenceFrom(known, cost) === undefined,
      () => world.count(prepare),
    );
    counts.set(name, rewritten(counted, known));
    if (!isWriting) expect(differenceFrom(known, counted)).toBeUndefined();
  });

  it('the ledger has no other rows', () => {
    if (!isWriting) expect([...ledger.keys()]).toEqual(ROWS.map(({ name }) => name));
  });

  const cells = (name: string): Cells => counts.get(name) ?? ledger.get(name) ?? {};

  describe.each(REFUSED_ROWS)('refused: $name', ({ name, insteadOf, exception }) => {
    it(`→ costs no more than ${insteadOf}, but for what the row names`, () => {
      expect(columnsAbove(cells(name), cells(insteadOf))).toEqual(exception?.costsMore ?? []);
    });

    it('→ writes nothing to Redis, but for what the row names', async () => {
      const { commands, 'inside scripts': inside } = cells(name);
      const writes = await world.writesAmong([...commandsIn(commands), ...commandsIn(inside)]);
      expect(writes).toEqual(exception?.writes ?? []);
    });
  });
});
