// A replica of the real program that ended a session is killed: before it notified a client, while a client has its notice and
// does not answer, and after a client answered. The other replica does what is left.

import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { s256 } from '../../../../src/oauth/values/pkce.ts';
import { answerIn } from '../../../clients/person.ts';
import { freePort } from '../../../free-port.ts';
import { hidden, TestBrowser } from '../../../http/sign-in/sign-in-browser.ts';
import { GrantryProcess } from '../../../processes/grantry-process.ts';
import { until } from '../../../until.ts';
import { describeRedis, type RedisServer, startRedis } from '../../setup/servers.ts';

const CALLBACK = 'https://shop.example/cb';
const VERIFIER = 'verifier'.repeat(6);
const PASSWORD = 'the password of a person';
/** Of one namespace: while two of its hosts do not answer, no third is notified. */
const CLIENTS = ['one', 'two', 'three'] as const;
/** A sweep, the lease of a try that was begun, and one more sweep. */
const LONGEST_WAIT = 50_000;

type ClientName = (typeof CLIENTS)[number];

interface Notice {
  readonly client: string;
  readonly sub: string | undefined;
  readonly sid: unknown;
}

function manifests(host: string): string {
  const policy = `{apiVersion: grantry.dev/v1alpha1, kind: ClientPolicy, metadata: {name: of-tests}, spec: {
    namespaceSelector: {}, allow: {consentSkip: true, scopes: ['**'], logoutHosts: ['127.0.0.1']}}}`;
  const clients = CLIENTS.map(
    (name) => `
---
apiVersion: grantry.dev/v1alpha1
kind: OAuthClient
metadata: {name: ${name}, uid: uid-${name}}
spec:
  grantTypes: [authorization_code, refresh_token]
  redirectUris: ['${CALLBACK}']
  scopes: [openid, offline_access]
  consent: Skip
  backchannelLogoutUri: ${host}/${name}
`,
  );
  return policy + clients.join('');
}

describeRedis('when the replica that ended a session is killed', () => {
  let redis: RedisServer;
  let hosts: Server;
  let folder: string;
  let issuer: string;
  const replicas: { readonly address: string; readonly process: GrantryProcess }[] = [];
  const notices: Notice[] = [];
  /** Answers of hosts that are held back. */
  let held: ServerResponse[] | undefined;

  beforeAll(async () => {
    redis = await startRedis();
    folder = await mkdtemp(join(tmpdir(), 'grantry-sign-out-'));
    issuer = `http://localhost:${await freePort()}`;
    hosts = createServer(async (request, response) => {
      const { sub, sid } = decodeJwt(new URLSearchParams(await text(request)).get('logout_token') ?? '');
      notices.push({ client: String(request.url).slice(1), sub, sid });
      if (held === undefined) response.end();
      else held.push(response);
    });
    hosts.listen(0, '127.0.0.1');
    await once(hosts, 'listening');
    await writeFile(join(folder, 'all.yaml'), manifests(`http://127.0.0.1:${(hosts.address() as AddressInfo).port}`));
    for (let count = 0; count < 2; count++) replicas.push(await startReplica());
  });
  afterAll(async () => {
    hosts.closeAllConnections();
    hosts.close();
    for (const { process } of replicas) await process.end('SIGKILL');
    await redis.stop();
    await rm(folder, { recursive: true, force: true });
  });

  async function startReplica() {
    const port = await freePort();
    const people = ['ann', 'nina'].flatMap((person) => ['--user', `${person}:${PASSWORD}`]);
    const environment = { GRANTRY_REDIS_URL: redis.url, GRANTRY_RATE_LIMITS: 'off', GRANTRY_LOG_FORMAT: 'json' };
    const process = new GrantryProcess(['dev', folder, '--port', `${port}`, '--issuer', issuer, ...people], {
      environment,
    });
    await process.printed(/Admin +http:/);
    return { address: `http://127.0.0.1:${port}`, process };
  }

  const addressOf = (replica: number) => replicas[replica]?.address ?? '';

  async function token(replica: number, client: ClientName, form: Readonly<Record<string, string>>) {
    const secret = (await readFile(join(folder, `.grantry/secrets/default.${client}.secret`), 'utf8')).trimEnd();
    const authorization = `Basic ${btoa(`default.${client}:${secret}`)}`;
    const body = new URLSearchParams(form);
    const response = await fetch(`${addressOf(replica)}/token`, { method: 'POST', body, headers: { authorization } });
    return { status: response.status, body: (await response.json()) as Record<string, string> };
  }

  /** Signs a person in to every client, with and without `offline_access`, in one browser of its own. */
  async function visit(username: string) {
    const browser = new TestBrowser(addressOf(0), issuer);
    const families: { client: ClientName; offline: boolean; refresh: string; sub: string; sid: unknown }[] = [];
    for (const client of CLIENTS) {
      for (const offline of [false, true]) {
        const url = new URL(`${issuer}/authorize`);
        url.search = new URLSearchParams({
          response_type: 'code',
          client_id: `default.${client}`,
          redirect_uri: CALLBACK,
          scope: offline ? 'openid offline_access' : 'openid',
          code_challenge: s256(VERIFIER),
          code_challenge_method: 'S256',
        }).toString();
        const back = await answerIn(browser, url, { username, password: PASSWORD, decision: 'allow' });
        const code = back.searchParams.get('code') ?? '';
        const form = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: VERIFIER };
        const { body } = await token(0, client, form);
        const { sub = '', sid } = decodeJwt(body.id_token ?? '');
        families.push({ client, offline, refresh: body.refresh_token ?? '', sub, sid });
      }
    }
    const [first] = families;
    return { browser, families, sub: first?.sub, sid: first?.sid };
  }

  type Visit = Awaited<ReturnType<typeof visit>>;

  async function signOut({ browser }: Visit): Promise<void> {
    const csrf = hidden(await browser.get('/logout'), 'csrf');
    expect((await browser.post('/logout/confirm', { csrf })).status).toBe(200);
  }

  /** The clients that were notified of the end of this session. */
  function notifiedOf({ sub, sid }: Visit): readonly string[] {
    return [...new Set(notices.filter((each) => each.sub === sub && each.sid === sid).map(({ client }) => client))];
  }

  /** Whether the families with and without `offline_access` can be refreshed, at the other replica. */
  async function refreshes({ families }: Visit) {
    const seen = { offline: new Set<number>(), others: new Set<number>() };
    for (const { client, offline, refresh } of families) {
      const { status } = await token(1, client, { grant_type: 'refresh_token', refresh_token: refresh });
      seen[offline ? 'offline' : 'others'].add(status);
    }
    return { offline: [...seen.offline], others: [...seen.others] };
  }

  it('each client is notified, its grants are revoked but for offline_access, and no other session ends', {
    timeout: 90_000,
  }, async () => {
    const visits = {
      after: await visit('ann'),
      during: await visit('ann'),
      other: await visit('ann'),
      nina: await visit('nina'),
    };
    await signOut(visits.after);
    await until('all have answered', () => notifiedOf(visits.after).length === CLIENTS.length);
    held = [];
    await signOut(visits.during);
    await until('two have a notice and the third waits', () => held?.length === 2);
    await replicas[0]?.process.end('SIGKILL');
    held = undefined;
    expect(notifiedOf(visits.during)).toHaveLength(2);
    const inTime = notices.length;
    await until(
      'each has answered the other replica',
      () => new Set(notices.slice(inTime).map(({ client }) => client)).size === CLIENTS.length,
      LONGEST_WAIT,
    );
    expect([...notifiedOf(visits.during)].sort()).toEqual([...CLIENTS].sort());
    for (const visit of [visits.after, visits.during]) {
      expect(await refreshes(visit)).toEqual({ offline: [200], others: [400] });
    }
    for (const visit of [visits.other, visits.nina]) {
      expect(notifiedOf(visit)).toEqual([]);
      expect(await refreshes(visit)).toEqual({ offline: [200], others: [200] });
    }
  });
});
