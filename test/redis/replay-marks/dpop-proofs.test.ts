// DPoP proofs at two replicas of the program on one Redis: which marks there are, what counts once, and what is answered while
// Redis is unavailable or has been emptied (docs/scope.md: D3, 6819-1).

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import autocannon from 'autocannon';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DpopHolder } from '../../dpop-holder.ts';
import { folderOf, machineClient, removeFolder } from '../../manifests/a-folder.ts';
import { endProcesses, startDev } from '../../processes/grantry-process.ts';
import { until } from '../../until.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const SCOPES = '  scopes: [default/read]\n  defaultScopes: [default/read]\n';
const MANIFESTS = {
  'job.yaml': machineClient('job', `${SCOPES}  senderConstraint: DPoP\n`),
  'policy.yaml': `apiVersion: grantry.dev/v1alpha1
kind: ClientPolicy
metadata: {name: of-tests}
spec:
  namespaceSelector: {}
  allow: {authMethods: [client_secret_basic, none]}
`,
  'app.yaml': `apiVersion: grantry.dev/v1alpha1
kind: OAuthClient
metadata: {name: app}
spec:
  auth: {method: none}
  grantTypes: [authorization_code, refresh_token]
  redirectUris: ['https://app.example/cb']
  senderConstraint: DPoP
${SCOPES}`,
};
const MACHINE = { grant_type: 'client_credentials' };
const AT_ONCE = 400;
const STRANGERS = 10_000;
const MOST_RACES = 5;

type Dev = Awaited<ReturnType<typeof startDev>>;

describeRedis('DPoP proofs at two replicas on one Redis', () => {
  let redis: RedisServer;
  let folder: string;
  let replicas: readonly Dev[];
  let credentials: string;
  const holder = new DpopHolder();

  beforeAll(async () => {
    redis = await startRedis();
    folder = await folderOf(MANIFESTS);
    const options = { environment: { GRANTRY_LOG_LEVEL: 'error', GRANTRY_LOG_FORMAT: 'json' } };
    const first = await startDev(folder, ['--redis', redis.url], options);
    const second = await startDev(folder, ['--redis', redis.url, '--issuer', first.issuer], options);
    replicas = [first, second];
    credentials = `default.job:${(await readFile(join(folder, '.grantry/secrets/default.job.secret'), 'utf8')).trim()}`;
  });
  afterAll(async () => {
    await endProcesses();
    await redis.stop();
    await removeFolder(folder);
  });

  function proofBy(by: DpopHolder): string {
    return by.proof(`${replicas[0]?.issuer}/token`, Date.now());
  }

  /** What a replica answers to the confidential client. */
  function ask(replica: number, proof: string) {
    return post(replica, MACHINE, {
      dpop: proof,
      authorization: `Basic ${Buffer.from(credentials).toString('base64')}`,
    });
  }

  async function post(replica: number, form: Record<string, string>, headers: Record<string, string>) {
    const url = `${replicas[replica]?.address}/token`;
    const response = await fetch(url, { method: 'POST', body: new URLSearchParams(form), headers });
    const body = (await response.json()) as { readonly error?: string; readonly token_type?: string };
    return { status: response.status, error: body.error, type: body.token_type };
  }

  /** A proof in each of so many requests, by a hundred keys. @returns how often there was which error */
  async function floodOfStrangers(address: string, amount: number): Promise<Readonly<Record<string, number>>> {
    const strangers = Array.from({ length: 100 }, () => new DpopHolder());
    const form = { grant_type: 'refresh_token', refresh_token: 'guessed', client_id: 'default.app' };
    const errors: Record<string, number> = {};
    let sent = 0;
    const request: autocannon.Request = {
      method: 'POST',
      body: new URLSearchParams(form).toString(),
      setupRequest(next) {
        const dpop = proofBy(strangers[sent++ % strangers.length] as DpopHolder);
        return { ...next, headers: { 'content-type': 'application/x-www-form-urlencoded', dpop } };
      },
      onResponse(_status, body) {
        const { error = 'none' } = JSON.parse(body) as { readonly error?: string };
        errors[error] = (errors[error] ?? 0) + 1;
      },
    };
    // A client that costs less than the server does, unlike fetch.
    await autocannon({ url: `${address}/token`, connections: 16, amount, requests: [request] });
    return errors;
  }

  /** The marks in Redis of values that count once. */
  async function marks(): Promise<number> {
    return ((await redis.command('KEYS', 'grantry:*:seen:*')) as unknown[]).length;
  }

  async function storeErrors(): Promise<string> {
    const texts = await Promise.all(replicas.map(async ({ admin }) => (await fetch(`${admin}/metrics`)).text()));
    return texts.flatMap((text) => text.match(/^grantry_store_errors_total.*$/gm) ?? []).join('\n');
  }

  it('one proof 400 times at once → one token, 399 refusals', async () => {
    for (let race = 1; race <= MOST_RACES; race++) {
      const [before, proof] = [await storeErrors(), proofBy(holder)];
      const answers = await Promise.all(Array.from({ length: AT_ONCE }, (_, index) => ask(index % 2, proof)));
      // On a busy machine Redis may answer too late, and a replica then goes by its own memory: that is another test.
      if ((await storeErrors()) !== before) continue;
      expect(answers.filter(({ status, type }) => status === 200 && type === 'DPoP')).toHaveLength(1);
      expect(answers.filter(({ status, error }) => status === 400 && error === 'invalid_dpop_proof')).toHaveLength(
        AT_ONCE - 1,
      );
      return;
    }
    throw new Error(`Redis was late in ${MOST_RACES} races`);
  });

  it('10 000 proofs of strangers under the id of a public client → no mark in Redis', async () => {
    const before = await marks();
    expect(await ask(0, proofBy(holder))).toMatchObject({ status: 200 });
    expect(await marks()).toBe(before + 1);

    const answers = await Promise.all(replicas.map(({ address }) => floodOfStrangers(address, STRANGERS / 2)));
    expect(answers).toEqual([{ invalid_grant: STRANGERS / 2 }, { invalid_grant: STRANGERS / 2 }]);
    expect(await marks()).toBe(before + 1);
  }, 120_000);

  it('a proof from before Redis was emptied → 503, no token; a proof of the next second → a token', async () => {
    const proof = proofBy(holder);
    expect(await ask(0, proof)).toMatchObject({ status: 200 });
    await redis.command('FLUSHALL');
    expect(await ask(1, proof)).toEqual({ status: 503, error: 'temporarily_unavailable', type: undefined });
    await until('a new proof gets a token', async () => (await ask(1, proofBy(holder))).status === 200);
    expect((await ask(0, proof)).status).toBe(503);
  });

  it('while Redis is unavailable → a token all the same, and one replica gives it once for a proof', async () => {
    await redis.kill();
    await until('readiness has noticed', async () => {
      const texts = await Promise.all(replicas.map(async ({ admin }) => (await fetch(`${admin}/readyz`)).text()));
      return texts.every((text) => /redis: away/.test(text));
    });
    const proof = proofBy(holder);
    expect(await ask(0, proof)).toMatchObject({ status: 200, type: 'DPoP' });
    expect(await ask(0, proof)).toMatchObject({ status: 400, error: 'invalid_dpop_proof' });
    expect(await ask(1, proof)).toMatchObject({ status: 200, type: 'DPoP' });
  });
});
