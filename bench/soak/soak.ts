// `npm run bench:soak`: one grantry under a steady mix of requests, while its signing key and a client secret are rotated and
// its clients are edited. Prints a line a minute, and ends with a verdict: 1 where a request failed, a rotation did not
// happen, or memory grew.

import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { manifestFolder, startGrantry } from '../grantry-server.ts';
import { openGrantryState } from '../grantry-state.ts';
import { BOTH_CORES, SERVER_CORE, stopAll } from '../load/pinned-process.ts';
import { startRedis } from '../redis-server.ts';
import { Changes } from './changes.ts';
import { Journeys } from './journeys.ts';
import { COMPARED_MINUTES, growthOf, type Sample, storeErrorsOf, takeSample, textOf } from './samples.ts';

const SAMPLE_SECONDS = 10;
/** Few, so that the index of the grants of each is soon as long as it gets. */
const PEOPLE = 10;
/** Codes are made for so many journeys at a time. */
const CODES = 20;
/** As long as tokens and grants live: state is as large as it gets long before the second quarter. */
const LIFETIME = '1m';

const { values: flags } = parseArgs({
  options: { minutes: { type: 'string', default: '20' }, rate: { type: 'string', default: '20' } },
});
const minutes = Number(flags.minutes);
const perSecond = Number(flags.rate);

const faults: string[] = [];
try {
  if (!(minutes > 0 && perSecond > 0)) throw new TypeError('--minutes and --rate need a positive number');
  faults.push(...(await soak()));
} finally {
  stopAll();
}
console.log(faults.length === 0 ? 'passed' : `failed\n${faults.map((fault) => `  ${fault}`).join('\n')}`);
// Connections to servers that are gone would be made again and again.
process.exit(faults.length === 0 ? 0 : 1);

/** Runs to the end, and answers what is wrong. */
async function soak(): Promise<readonly string[]> {
  const folder = manifestFolder({ idTokens: 'ES256', refreshTokenLifetime: LIFETIME, clients: 100 });
  const changes = new Changes(folder, { keyRotationSeconds: (60 * minutes) / 10 });
  await changes.begin();
  const redis = await startRedis(BOTH_CORES, { appendOnly: true });
  const server = await startGrantry({ folder, redisUrl: redis.url, cores: SERVER_CORE });
  const state = await openGrantryState(redis.url, PEOPLE);
  const journeys = new Journeys({ origin: server.origin, readSecret: () => changes.readSecret() });
  const samples: Sample[] = [];
  const began = performance.now();
  const elapsed = () => (performance.now() - began) / 1000;
  let begun = 0;
  let codes: string[] = [];
  for (let printed = 0; elapsed() < 60 * minutes; ) {
    if (codes.length === 0) codes = (await state.give(CODES, 'sign-in')).map(({ code }) => code);
    journeys.begin(codes.pop() ?? '');
    begun += 1;
    await changes.makeDue(elapsed());
    if (elapsed() >= SAMPLE_SECONDS * (samples.length + 1)) samples.push(await takeSample(server, redis));
    if (elapsed() >= 60 * (printed + 1)) {
      printed += 1;
      const latest = samples.at(-1);
      if (latest) console.log(`${printed} min: ${journeys.summary()}; ${textOf(latest)}; ${changes.summary()}`);
    }
    await sleep(Math.max(0, (1000 * begun) / perSecond - (performance.now() - began)));
  }
  await journeys.settled();
  await state.close();
  const last = await takeSample(server, redis);
  console.log(`at the end: ${textOf(last)}; errors of Redis: ${await storeErrorsOf(server)}`);
  console.log(`${journeys.summary()}; ${changes.summary()}; ${journeys.keyIds.size} keys signed`);
  return [...journeys.faults(), ...changes.faults(journeys.keyIds.size), ...memoryFaults(samples)];
}

function memoryFaults(samples: readonly Sample[]): readonly string[] {
  if (minutes < COMPARED_MINUTES) {
    console.log(`memory is not compared in a run shorter than ${COMPARED_MINUTES} minutes`);
    return [];
  }
  const growths = growthOf(samples);
  for (const { text } of growths) console.log(text);
  return growths.filter(({ isFlat }) => !isFlat).map(({ text }) => text);
}
