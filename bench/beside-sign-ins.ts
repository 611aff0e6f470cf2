// What clients without people notice of sign-ins: `node bench/beside-sign-ins.ts [ROUNDS] [SECONDS] [SIGN-INS]`. The latency of client
// credentials beside 200 sign-ins a second by RS256, and without; of people who have a session, as a sign-in with a password is
// a hash of argon2id and nothing else beside it. In alternation, as ratios inside each round.

import { manifestFolder, startGrantry } from './grantry-server.ts';
import { type GrantryState, inBatches, openGrantryState } from './grantry-state.ts';
import { CLIENT_CREDENTIALS, HEADERS, PEOPLE, requestTokens, usernameOf } from './load/load-client.ts';
import type { LoadOrder, LoadReport } from './load/load-generator.ts';
import { LOAD_CORE, runPinned, SERVER_CORE, stopAll } from './load/pinned-process.ts';
import type { SignInOrder, SignInReport } from './load/sign-in-generator.ts';
import { startRedis } from './redis-server.ts';
import { summarize } from './statistics.ts';

/** Fewer than would fill the server by themselves: then sign-ins would wait for them and not the other way round. */
const CONNECTIONS = 4;
const [rounds = 9, seconds = 8, perSecond = 200] = process.argv.slice(2).map(Number);

try {
  const redis = await startRedis(LOAD_CORE, { appendOnly: true });
  const { origin } = await startGrantry({
    folder: manifestFolder({ idTokens: 'RS256' }),
    redisUrl: redis.url,
    cores: SERVER_CORE,
  });
  await requestTokens(`${origin}/token`, CLIENT_CREDENTIALS);
  const state = await openGrantryState(redis.url);
  const cookies = await sessions(state);
  const ratios: number[] = [];
  await besides(origin, cookies);
  for (let round = 0; round < rounds; round += 1) {
    const beside = round % 2 === 0 ? await besides(origin, cookies) : undefined;
    const alone = await clientCredentials(origin);
    const { load, signIns } = beside ?? (await besides(origin, cookies));
    ratios.push(load.p99Milliseconds / alone.p99Milliseconds);
    console.log(
      `p99 alone ${alone.p99Milliseconds.toFixed(1)} ms, beside ${load.p99Milliseconds.toFixed(1)} ms`,
      `(${signIns.perSecond.toFixed(0)} sign-ins a second, ${signIns.failed} failed)`,
    );
  }
  const { median, lowerQuartile, upperQuartile } = summarize(ratios);
  console.log(
    `p99 beside sign-ins / alone: ${median.toFixed(2)} (${lowerQuartile.toFixed(2)}–${upperQuartile.toFixed(2)})`,
  );
  await state.close();
} finally {
  stopAll();
}
process.exit(0);

/** The cookie of a browser of each person; all have agreed to what the client asks for. */
function sessions(state: GrantryState): Promise<readonly string[]> {
  return inBatches(
    Array.from({ length: PEOPLE }, (_, number) => usernameOf(number)),
    (username) => state.openSession(username),
  );
}

async function clientCredentials(origin: string): Promise<LoadReport> {
  const bodies = { kind: 'repeated', body: CLIENT_CREDENTIALS, seconds } as const;
  const order: LoadOrder = { url: `${origin}/token`, headers: HEADERS, connections: CONNECTIONS, bodies };
  return (await runPinned(LOAD_CORE, 'bench/load/load-generator.ts', order)) as LoadReport;
}

async function besides(origin: string, cookies: readonly string[]) {
  // Longer than the load that it is beside.
  const order: SignInOrder = { origin, cookies, perSecond, seconds: seconds + 1 };
  const signIns = runPinned(LOAD_CORE, 'bench/load/sign-in-generator.ts', order) as Promise<SignInReport>;
  return { load: await clientCredentials(origin), signIns: await signIns };
}
