// Long random histories of clients, thieves and time against the endpoints, compared with the model step by step. What the
// stores are, and what can befall them, is the caller's.

import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { expect } from 'vitest';
import type { AuditEvent } from '../../../src/oauth/ports/audit.ts';
import type { Stores } from '../../../src/oauth/ports/ports.ts';
import { modelRuns } from '../../model/model-runs.ts';
import { type Model, newModel } from './grant-model.ts';
import { checkInvariants, FAULT, HAPPENING, SCENES } from './model-commands.ts';
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
  /** Inspects what the stores hold when a history is over. */
  inspect?(model: Model): Promise<void>;
  close?(): Promise<void>;
}

/** Runs `runs` histories, or MODEL_RUNS of them, from MODEL_SEED if it is set; each meets every fault there is. */
export async function runModel(
  name: string,
  makeStores: (clock: { now(): number }) => Promise<ModelStores>,
  { runs }: { runs: number },
): Promise<void> {
  const { seed, numRuns } = modelRuns(name, runs);
  let now = START;
  const clock = { now: () => now };
  const befallen = { crash: 0, failOver: 0, empty: 0 };

  const property = (withFaults: boolean) => {
    const happenings = withFaults
      ? fc.oneof({ weight: 30, arbitrary: HAPPENING }, { weight: 1, arbitrary: FAULT })
      : HAPPENING;
    const part = fc.commands([happenings], { maxCommands: 20, size: 'max' });
    const scenes = fc.shuffledSubarray(withFaults ? [...SCENES] : [], { minLength: withFaults ? SCENES.length : 0 });
    return fc.asyncProperty(fc.tuple(part, part, part, part), scenes, async (parts, between) => {
      const commands = parts.flatMap((each, index) => [...each, ...(between[index] ?? [])]);
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
            async crash() {
              befallen.crash += 1;
              worlds[turn] = await protocolWorld({ stores: await faults.crash(), ...shared });
            },
            async failOver() {
              befallen.failOver += 1;
              await faults.failOver();
            },
            async empty() {
              befallen.empty += 1;
              await faults.empty();
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
  await fc.assert(property(faults !== undefined), { seed, numRuns });
  // No run is good that has not met all of them.
  if (faults) for (const times of Object.values(befallen)) expect(times).toBeGreaterThanOrEqual(numRuns);
}
