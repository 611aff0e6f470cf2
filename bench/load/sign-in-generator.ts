// Runs on the load's core: people with a session go to the client, so many in a second, and the client redeems their codes.
// Prints the outcome as JSON.

import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  CLIENT_ID,
  CODE_CHALLENGE,
  OPENID_SCOPES,
  REDIRECT_URI,
  redemption,
  requestTokens,
  SCOPE,
} from './load-client.ts';

export interface SignInOrder {
  readonly origin: string;
  /** The session cookie of each person, as the header has it. */
  readonly cookies: readonly string[];
  readonly perSecond: number;
  readonly seconds: number;
}

/** How many came to an ID token, and how many did not. */
export interface SignInReport {
  readonly perSecond: number;
  readonly failed: number;
}

const { origin, cookies, perSecond, seconds } = (await json(process.stdin)) as SignInOrder;
const query = new URLSearchParams({
  response_type: 'code',
  client_id: CLIENT_ID,
  redirect_uri: REDIRECT_URI,
  scope: [...OPENID_SCOPES, SCOPE].join(' '),
  code_challenge: CODE_CHALLENGE,
  code_challenge_method: 'S256',
  nonce: 'n-0S6_WzA2Mj',
  state: 'a-state-of-the-client',
});
const running: Promise<boolean>[] = [];
const began = performance.now();
for (let begun = 0; begun < perSecond * seconds; begun += 1) {
  const wait = (1000 * begun) / perSecond - (performance.now() - began);
  if (wait > 1) await sleep(wait);
  running.push(signIn(cookies[begun % cookies.length] ?? '').catch(() => false));
}
const done = await Promise.all(running);
const succeeded = done.filter(Boolean).length;
const took = (performance.now() - began) / 1000;
const report: SignInReport = { perSecond: succeeded / took, failed: done.length - succeeded };
process.stdout.write(JSON.stringify(report));

async function signIn(cookie: string): Promise<boolean> {
  const answer = await fetch(`${origin}/authorize?${query}`, { headers: { cookie }, redirect: 'manual' });
  await answer.arrayBuffer();
  const code = new URL(answer.headers.get('location') ?? '', origin).searchParams.get('code');
  if (code === null) throw new Error(`/authorize answered ${answer.status} without a code`);
  return (await requestTokens(`${origin}/token`, redemption(code))).id_token !== undefined;
}
