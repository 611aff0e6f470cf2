// Long random histories of clients, thieves and time against the endpoints, compared with the model step by step. What the
// stores are, and what can befall them, is the caller's.

import { randomBytes, randomInt } from 'node:crypto';
import fc from 'fast-check';
import type { AuditEvent } from '../../src/oauth/audit.ts';
import type { Stores } from '../../src/oauth/ports.ts';
import { type Model, newModel } from './grant-model.ts';
import { checkInvariants, FAULT, HAPPENING } from './model-commands.ts';
import { protocolWorld } from './protocol-world.ts';

const START = 1_800_000_000_000;

/** The stores of one history, their clock the one given. */
export interface ModelStores {
  /** One for each replica of the server; their requests alternate. */
  readonly replicas: readonly Stores[];
  /** What can befall them; undefined where nothing can. */
  readonly faults?: {
    /** A replica dies and another takes its place; its stores. */
    crash(): Promise<Stores>;
    /** Another server becomes the primary, with all that was written. */
    failOver(): Promise<void>;
    /** Everything written is lost. */
    empty(): Promise<void>;
  };
  /** Looks at what the stores hold when a history is over. */
  inspect?(model: Model): Promise<void>;
  close?(): Promise<void>;
}

/** Runs `runs` histories, or MODEL_RUNS of them, from MODEL_SEED if it is set. */
export async function runModel(
  name: string,
  makeStores: (clock: { now(): number }) => Promise<ModelStores>,
  { runs }: { runs: number },
): Promise<void> {
  const seed = Number(process.env.MODEL_SEED ?? randomInt(2 ** 31));
  console.info(`model run over ${name}: MODEL_SEED=${seed}`);
  let now = START;
  const clock = { now: () => now };

  const property = (withFaults: boolean) => {
    const happenings = withFaults
      ? fc.oneof({ weight: 30, arbitrary: HAPPENING }, { weight: 1, arbitrary: FAULT })
      : HAPPENING;
    const histories = fc.commands([happenings], { maxCommands: 80, size: 'max' });
    return fc.asyncProperty(histories, async (commands) => {
      now = START;
      const { replicas, faults, inspect, close } = await makeStores(clock);
      try {
        const shared = { clock, pepper: randomBytes(32), events: [] as AuditEvent[] };
        const worlds = await Promise.all(replicas.map((stores) => protocolWorld({ stores, ...shared })));
        let turn = 0;
        const real = {
          get world() {
            turn = (turn + 1) % worlds.length;
            return worlds[turn] as (typeof worlds)[number];
          },
          setTime(time: number) {
            now = time;
          },
          faults: faults && {
            ...faults,
            async crash() {
              worlds[turn] = await protocolWorld({ stores: await faults.crash(), ...shared });
            },
          },
        };
        const model = newModel(now);
        await fc.asyncModelRun(() => ({ model, real }), commands);
        for (const grant of model.grants) await checkInvariants(model, real, grant, Number.POSITIVE_INFINITY);
        await inspect?.(model);
      } finally {
        await close?.();
      }
    });
  };

  const { faults, close } = await makeStores(clock);
  await close?.();
  await fc.assert(property(faults !== undefined), { seed, numRuns: Number(process.env.MODEL_RUNS ?? runs) });
}
