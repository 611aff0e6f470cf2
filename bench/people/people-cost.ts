// What people cost: `node bench/people/people-cost.ts [ROUNDS]`. The server's CPU for a sign-in by an OpenID provider, from
// `GET /authorize` to the code, beside that for the redemption of a code, in alternation; then for the pages of the account of a
// person with 20 sessions and 50 applications. State is in Redis; the CPU of Redis and of the provider is not counted.

import { manifestFolder, startGrantry } from '../grantry-server.ts';
import { openGrantryState, subjectAt } from '../grantry-state.ts';
import {
  AUDIENCE,
  CLIENT_ID,
  CODE_CHALLENGE,
  PROVIDER,
  REDIRECT_URI,
  redemption,
  requestTokens,
  SCOPE,
  usernameOf,
} from '../load/load-client.ts';
import { appUid } from '../load/load-manifests.ts';
import { LOAD_CORE, type PinnedProcess, SERVER_CORE, stopAll } from '../load/pinned-process.ts';
import { startRedis } from '../redis-server.ts';
import { summarize } from '../statistics.ts';
import { codeFor, startProvider } from './openid-provider.ts';

const ROUNDS = Number(process.argv[2] ?? 9);
const SIGN_INS = 200;
/** Below the limit of unsuccessful callbacks of one address, each of which counts until it has succeeded. */
const AT_ONCE = 8;
const SESSIONS = 20;
const APPS = 50;
const VISITS = 100;
const YEAR = 365 * 24 * 3_600_000;

const query = new URLSearchParams({
  response_type: 'code',
  client_id: CLIENT_ID,
  redirect_uri: REDIRECT_URI,
  scope: SCOPE,
  code_challenge: CODE_CHALLENGE,
  code_challenge_method: 'S256',
  state: 'a-state-of-the-client',
});

try {
  const { origin: provider } = await startProvider();
  const redis = await startRedis(LOAD_CORE, { appendOnly: true });
  const folder = manifestFolder({ provider, hasUsers: false, asksPeople: false, apps: APPS });
  const server = await startGrantry({ folder, redisUrl: redis.url, cores: SERVER_CORE });
  await signIns(server.origin, server);
  const cost = { signIn: [] as number[], ratio: [] as number[] };
  for (let round = 0; round < ROUNDS; round += 1) {
    const { codes, microseconds: signIn } = await signIns(server.origin, server);
    const redeemed = await cpuFor(server, codes, (code) => requestTokens(`${server.origin}/token`, redemption(code)));
    cost.signIn.push(signIn / 1000);
    cost.ratio.push(signIn / redeemed.microseconds);
  }
  print('sign-in by a provider, ms of CPU', cost.signIn);
  print('sign-in by a provider / redemption of its code', cost.ratio);

  const subject = subjectAt(provider, usernameOf(0));
  const cookies: string[] = [];
  for (let count = 0; count < SESSIONS; count += 1) cookies.push((await signIn(server.origin, 0)).cookie);
  const state = await openGrantryState(redis.url);
  for (let app = 0; app < APPS; app += 1) {
    await state.stores.consents.give(subject, appUid(app), new Map([[AUDIENCE, [SCOPE]]]), YEAR);
    await state.stores.uses.note(subject, appUid(app));
  }
  await state.close();
  for (const [path, sign] of [
    ['/account', 'Ada'],
    ['/account/sessions', 'sign_out'],
    ['/account/applications', 'Application'],
  ] as const) {
    await visits(server, { url: `${server.origin}${path}`, cookies, sign });
    const all: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      all.push((await visits(server, { url: `${server.origin}${path}`, cookies, sign })) / 1000);
    }
    print(`${path}, ms of CPU`, all);
  }
} finally {
  stopAll();
}
process.exit(0);

/** People sign in, each of another name and in a new browser. */
async function signIns(origin: string, server: PinnedProcess) {
  const people = Array.from({ length: SIGN_INS }, (_, person) => person);
  const { done, microseconds } = await cpuFor(server, people, (person) => signIn(origin, person));
  return { codes: done.map(({ code }) => code), microseconds };
}

/** @throws Error unless the browser comes to the client with a code */
async function signIn(origin: string, person: number): Promise<{ readonly code: string; readonly cookie: string }> {
  const cookies = new Map<string, string>();
  const away = await go(`${origin}/authorize?${query}`, cookies);
  const { searchParams } = new URL(away);
  const nonce = searchParams.get('nonce') ?? '';
  const code = codeFor({ username: usernameOf(person), nonce });
  const answer = new URLSearchParams({ code, state: searchParams.get('state') ?? '' });
  let location = await go(`${origin}/login/callback/${PROVIDER.name}?${answer}`, cookies);
  while (location.startsWith('/')) location = await go(`${origin}${location}`, cookies);
  const got = new URL(location).searchParams.get('code');
  if (got === null) throw new Error(`a sign-in led to ${location}`);
  return { code: got, cookie: cookieHeader(cookies) };
}

/** Where an address sends the browser. */
async function go(url: string, cookies: Map<string, string>): Promise<string> {
  const answer = await fetch(url, { headers: { cookie: cookieHeader(cookies) }, redirect: 'manual' });
  const page = await answer.text();
  const location = answer.headers.get('location');
  if (location === null) throw new Error(`${url} answered ${answer.status}: ${page.slice(0, 1000)}`);
  for (const line of answer.headers.getSetCookie()) {
    const [name = '', value = ''] = line.slice(0, line.indexOf(';')).split(/=(.*)/s);
    if (/max-age=0/i.test(line)) cookies.delete(name);
    else cookies.set(name, value);
  }
  return location;
}

function cookieHeader(cookies: ReadonlyMap<string, string>): string {
  return [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
}

/** The CPU of one visit, microseconds. @throws Error where the page lacks the sign of what it shows */
async function visits(
  server: PinnedProcess,
  { url, cookies, sign }: { readonly url: string; readonly cookies: readonly string[]; readonly sign: string },
): Promise<number> {
  const all = Array.from({ length: VISITS }, (_, visit) => cookies[visit % cookies.length] ?? '');
  const { microseconds } = await cpuFor(server, all, async (cookie) => {
    const answer = await fetch(url, { headers: { cookie } });
    const page = await answer.text();
    if (!page.includes(sign)) throw new Error(`${url} answered ${answer.status}: ${page.slice(0, 1000)}`);
  });
  return microseconds;
}

/** Does the work for each, some at a time. @returns what was done, and the CPU that the server took for one */
async function cpuFor<Each, Done>(server: PinnedProcess, all: readonly Each[], work: (each: Each) => Promise<Done>) {
  const before = server.cpuMicroseconds();
  const done: Done[] = [];
  for (let from = 0; from < all.length; from += AT_ONCE) {
    done.push(...(await Promise.all(all.slice(from, from + AT_ONCE).map(work))));
  }
  return { done, microseconds: (server.cpuMicroseconds() - before) / all.length };
}

function print(row: string, values: readonly number[]): void {
  const { median, lowerQuartile, upperQuartile } = summarize(values);
  console.log(`${row.padEnd(50)} ${median.toFixed(2)} (${lowerQuartile.toFixed(2)}–${upperQuartile.toFixed(2)})`);
}
