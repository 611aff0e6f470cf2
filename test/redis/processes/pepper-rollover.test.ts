// The pepper is replaced in steps: append the new one, swap, and after the longest refresh lifetime drop the old one.
// Two replicas are never more than one step apart, and between any two such no person is logged out.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PKCE } from '../../grantry.ts';
import { answerOf, hidden, TestBrowser } from '../../http/sign-in/sign-in-browser.ts';
import { folderOf, removeFolder } from '../../manifests/a-folder.ts';
import { endProcesses, post, startDev } from '../../processes/grantry-process.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const OLD = 'the pepper of yesterday, long enough to be one';
const NEW = 'the pepper of tomorrow, long enough to be one';
const STEPS = { before: [OLD], appended: [OLD, NEW], swapped: [NEW, OLD], dropped: [NEW] } as const;
type Step = keyof typeof STEPS;

const PERSON = { username: 'ann', password: 'a long password' };
// A program on this computer: consent is asked for each time.
const CALLBACK = 'http://127.0.0.1:8765/cb';
const CLIENT = `apiVersion: grantry.dev/v1alpha1
kind: OAuthClient
metadata: {name: app}
spec:
  grantTypes: [authorization_code, refresh_token]
  auth: {method: none}
  redirectUris: ['http://127.0.0.1/cb']
  scopes: [default/read]
  defaultScopes: [default/read]
---
apiVersion: grantry.dev/v1alpha1
kind: ClientPolicy
metadata: {name: programs}
spec:
  namespaceSelector: {}
  allow: {loopbackRedirects: true}
`;

describeRedis('while the pepper is replaced', () => {
  let redis: RedisServer;
  let folder: string;
  let issuer: string;
  const addresses = new Map<Step, string>();

  beforeAll(async () => {
    redis = await startRedis();
    folder = await folderOf({ 'app.yaml': CLIENT });
    for (const [step, peppers] of Object.entries(STEPS)) {
      const file = join(folder, `pepper-${step}.txt`);
      await writeFile(file, `${peppers.join('\n')}\n`);
      const flags = ['--redis', redis.url, '--user', `${PERSON.username}:${PERSON.password}`];
      const replica = await startDev(folder, flags, { environment: { GRANTRY_PEPPER_FILE: file } });
      addresses.set(step as Step, replica.address);
      issuer = replica.issuer;
    }
  });
  afterAll(async () => {
    await endProcesses();
    await redis.stop();
    await removeFolder(folder);
  });

  const tokenOf = (step: Step, form: Readonly<Record<string, string>>) =>
    post(`${addresses.get(step)}/token`, { client_id: 'default.app', ...form });
  const refresh = async (step: Step, token: string) => {
    const { status, body } = await tokenOf(step, { grant_type: 'refresh_token', refresh_token: token });
    expect([status, body.error]).toEqual([200, undefined]);
    return String(body.refresh_token);
  };

  /** A sign-in whose every step is at the other replica than the one before. */
  async function signIn(first: Step, second: Step): Promise<string> {
    const [here, there] = [first, second].map((step) => new TestBrowser(addresses.get(step) ?? '', issuer));
    if (here === undefined || there === undefined) throw new Error('no browser');
    const carry = (from: TestBrowser, to: TestBrowser) => {
      for (const [name, value] of from.cookies) to.cookies.set(name, value);
    };
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: 'default.app',
      redirect_uri: CALLBACK,
      code_challenge: PKCE.challenge,
      code_challenge_method: 'S256',
    });
    const login = await here.get(`/authorize?${query}`);
    carry(here, there);
    const fields = { ...PERSON, csrf: hidden(login, 'csrf'), request: hidden(login, 'request') };
    const signedIn = await there.post('/login', fields);
    expect(signedIn.status).toBe(303);
    const path = signedIn.location ?? '';
    const consent = await there.get(path);
    carry(there, here);
    const decided = await here.post(path, { csrf: hidden(consent, 'csrf'), decision: 'allow' });
    expect(decided.status).toBe(303);
    carry(here, there);
    const { code = '' } = answerOf(await there.get(decided.location ?? ''));
    const redeeming = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: PKCE.verifier };
    const { status, body } = await tokenOf(first, redeeming);
    expect(status).toBe(200);
    return String(body.refresh_token);
  }

  it.each<[Step, Step]>([
    ['before', 'appended'],
    ['appended', 'before'],
    ['appended', 'swapped'],
    ['swapped', 'appended'],
    ['swapped', 'dropped'],
    ['dropped', 'swapped'],
  ])('a sign-in and its refresh tokens go on between a replica that is at "%s" and one at "%s"', async (a, b) => {
    let token = await signIn(a, b);
    for (const step of [b, a, b]) token = await refresh(step, token);
    // The answer was lost, and the retry comes to the other replica: both successors are of one generation.
    const [heard, again] = [await refresh(a, token), await refresh(b, token)];
    const next = await refresh(b, heard);
    expect(await refresh(a, again)).not.toBe('');
    await refresh(b, next);
  });

  it('a grant of the old pepper lives until the old one is dropped, and one of the new pepper lives on', async () => {
    const token = await refresh('swapped', await signIn('swapped', 'swapped'));
    expect(await refresh('dropped', token)).not.toBe('');
    const left = await refresh('swapped', await signIn('before', 'appended'));
    const { status, body } = await tokenOf('dropped', { grant_type: 'refresh_token', refresh_token: left });
    expect([status, body.error]).toEqual([400, 'invalid_grant']);
    await refresh('swapped', left);
  });
});
