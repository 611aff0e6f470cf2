// People of an identity provider at two token servers over a real API server: a sign-in that begins at one and ends at the other,
// and what each kill switch of a manifest ends at both, also when Redis has lost all. How long that took is an annotation of the
// test.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { hashPassword } from '../../../src/login/local/local-users.ts';
import { s256 } from '../../../src/oauth/values/pkce.ts';
import { CertificateMaker } from '../../client-certificates.ts';
import { answerIn, fillIn } from '../../clients/person.ts';
import { hidden, type Page, TestBrowser } from '../../http/sign-in/sign-in-browser.ts';
import { ScriptedProvider } from '../../login/upstream/scripted-provider.ts';
import { describeRedis } from '../../redis/setup/servers.ts';
import { succeeds, until } from '../../until.ts';
import { type Manifest, nextSecond } from '../setup/cluster.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { CALLBACK, introspect, redeem, refresh, VERIFIER } from '../setup/signed-in.ts';
import { type AClient, ISSUER, type TokenServerProcess, TokenServers } from '../setup/token-servers.ts';

/** Well above the second that is promised, which a busy machine does not keep. */
const PATIENCE = 10_000;
const GRACE = { username: 'grace', password: 'the password of grace' };
const PROVIDER = 'corp';

describeRedis('people of a provider at two token servers', () => {
  const cluster = sharedCluster();
  const maker = new CertificateMaker();
  const authority = maker.authority();
  let upstream: ScriptedProvider;
  let install: TokenServers;
  let first: TokenServerProcess;
  let second: TokenServerProcess;
  let client: AClient;
  let folder: string;
  let passwordHash: string;
  let isDisabled = false;

  beforeAll(async () => {
    const certificate = maker.make({ issuer: authority, extensions: ['subjectAltName=DNS:localhost'] });
    upstream = await ScriptedProvider.start(certificate);
    upstream.claims = {
      preferred_username: 'ada',
      name: 'Ada',
      email: 'a@corp.example',
      email_verified: true,
      groups: [],
    };
    folder = await mkdtemp(join(tmpdir(), 'grantry-people-'));
    passwordHash = await hashPassword(GRACE.password);
    await writeUsers();
    install = await TokenServers.install(cluster);
    const environment = { GRANTRY_USERS_FILE: usersFile() };
    const [one, two] = await install.startReady(2, { environment });
    [first, second] = [one as TokenServerProcess, two as TokenServerProcess];
    const namespace = await cluster.namespace();
    client = await install.client(namespace, 'web', {
      grantTypes: ['authorization_code', 'refresh_token'],
      redirectUris: [CALLBACK],
    });
    await restore();
  });
  afterEach(restore);
  afterAll(async () => {
    upstream?.stop();
    await install?.stop();
    await rm(folder, { recursive: true });
    maker.remove();
  });

  const usersFile = () => join(folder, 'users.yaml');

  const outputs = () => [first, second].map(({ process }) => process.output);

  /** Waits until both have read what changes. */
  async function disable(disabled: boolean): Promise<void> {
    if (disabled === isDisabled) return;
    isDisabled = disabled;
    const printed = outputs().map(({ length }) => length);
    await writeUsers();
    const haveRead = () =>
      outputs().every((output, index) => output.slice(printed[index]).includes('the users were read again'));
    await until('both have read the file', haveRead, PATIENCE);
  }

  async function writeUsers(): Promise<void> {
    const { username } = GRACE;
    await writeFile(usersFile(), JSON.stringify([{ username, passwordHash, disabled: isDisabled }]));
  }

  /** Waits until the servers have voided what was issued before, which would void later sign-ins, too. */
  async function loseRedis(): Promise<void> {
    await install.redis('FLUSHALL');
    await until('the loss is repaired', async () => {
      const markers = (await install.redis('KEYS', '*:marker')) as readonly string[];
      return markers.length === 256;
    });
  }

  function provider(changes: object = {}): Manifest {
    const oidc = { issuer: upstream.issuer };
    return {
      apiVersion: 'grantry.dev/v1alpha1',
      kind: 'IdentityProvider',
      metadata: { name: PROVIDER, namespace: install.namespace },
      spec: { type: 'OIDC', displayName: 'Corp', clientSecretRef: { name: 'corp-client' }, oidc, ...changes },
    };
  }

  function secret(certificate = authority.certificate): Manifest {
    const stringData = { 'client-id': 'grantry', 'client-secret': 'of-the-provider', 'ca.crt': certificate };
    const metadata = { name: 'corp-client', namespace: install.namespace };
    return { apiVersion: 'v1', kind: 'Secret', metadata, type: 'grantry.dev/identity-provider', stringData };
  }

  /** As it was in the beginning, at both. */
  async function restore(): Promise<void> {
    await disable(false);
    await cluster.apply(secret(), provider());
    for (const server of [first, second]) {
      await until('the provider is served again', async () => (await leave(browserAt(server))) !== undefined, PATIENCE);
    }
    await until('both ways lead in', async () => (await succeeds(signInByProvider())) && succeeds(signInByPassword()));
  }

  /** Keeps a copy of all that Redis holds. @returns puts it in place of what Redis holds then */
  async function copyOfRedis(): Promise<() => Promise<void>> {
    const keys = (await install.redis('KEYS', '*')) as readonly string[];
    for (const key of keys) await install.redis('COPY', key, key, 'DB', 1);
    return async () => {
      await install.redis('FLUSHDB');
      await install.redis('SWAPDB', 0, 1);
    };
  }

  /** A browser at a server, with the cookies of another one of the same person. */
  function browserAt(server: TokenServerProcess, other?: TestBrowser): TestBrowser {
    const browser = new TestBrowser(server.url, ISSUER);
    for (const [name, value] of other?.cookies ?? []) browser.cookies.set(name, value);
    return browser;
  }

  function authorizePath(): string {
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: client.clientId,
      redirect_uri: CALLBACK,
      code_challenge: s256(VERIFIER),
      code_challenge_method: 'S256',
    });
    return `/authorize?${query}`;
  }

  /** By the button of the provider. @returns the request to it; undefined where there is no button, or it leads nowhere */
  async function leave(browser: TestBrowser): Promise<URLSearchParams | undefined> {
    const page = await browser.get(authorizePath());
    if (!page.body.includes('<bdi>Corp</bdi>')) return undefined;
    const fields = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
    const { location } = await browser.post(`/login/upstream/${PROVIDER}`, fields);
    return location === undefined ? undefined : new URL(location).searchParams;
  }

  /** Leaves from the first server and comes back to the second. */
  async function signInByProvider(): Promise<Held> {
    const start = browserAt(first);
    const request = await leave(start);
    upstream.nonce = request?.get('nonce') ?? '';
    const browser = browserAt(second, start);
    let page = await browser.get(`/login/callback/${PROVIDER}?state=${request?.get('state')}&code=c`);
    // The redirect that resumes the request, the consent page, its answer.
    for (let step = 0; step < 3 && !page.location?.startsWith(CALLBACK); step += 1) page = await goOn(browser, page);
    const { searchParams } = new URL(page.location ?? '');
    return await heldBy(browser, searchParams.get('code'));
  }

  function goOn(browser: TestBrowser, page: Page): Promise<Page> {
    if (page.location !== undefined) return browser.get(page.location);
    const form = fillIn(page, { username: '', password: '', decision: 'allow' });
    if (form === undefined) throw new Error(`the sign-in ended with ${page.status}`);
    return browser.post(form.action, form.fields);
  }

  async function signInByPassword(): Promise<Held> {
    const browser = browserAt(first);
    const arrived = await answerIn(browser, new URL(`${ISSUER}${authorizePath()}`), { ...GRACE, decision: 'allow' });
    return await heldBy(browser, arrived.searchParams.get('code'));
  }

  interface Held {
    readonly browser: TestBrowser;
    readonly accessToken: string;
    readonly refreshToken: string;
  }

  async function heldBy(browser: TestBrowser, code: string | null): Promise<Held> {
    const { status, body } = await redeem(first, client, code ?? '');
    expect(status).toBe(200);
    return { browser, accessToken: body.access_token ?? '', refreshToken: body.refresh_token ?? '' };
  }

  const isActive = async (server: TokenServerProcess, { accessToken }: Held) =>
    (await introspect(server, client, accessToken)).body.active;

  /** What of it works at a server; a refresh gives other tokens, so what works is asked once. */
  async function worksAt(server: TokenServerProcess, held: Held) {
    const { location = '' } = await browserAt(server, held.browser).get(authorizePath());
    return {
      session: location.startsWith(CALLBACK),
      introspection: await isActive(server, held),
      refresh: (await refresh(server, client, held.refreshToken)).status === 200,
    };
  }

  const [ALL, NOTHING] = [true, false].map((works) => ({ session: works, introspection: works, refresh: works }));

  it('given a sign-in that begins at one → it ends at the other, and holds at both', async () => {
    const held = await signInByProvider();
    expect(await worksAt(first, held)).toEqual(ALL);
    expect(await isActive(second, held)).toBe(true);
  });

  interface Case {
    readonly name: string;
    readonly signIn?: () => Promise<Held>;
    readonly strike: () => Promise<unknown>;
    /** Whether the person may sign in again. */
    readonly isWelcome?: boolean;
  }

  const cases: readonly Case[] = [
    { name: 'a provider that is suspended', strike: () => cluster.apply(provider({ suspended: true })) },
    {
      name: 'a provider that is deleted',
      strike: async () => cluster.call('DELETE', await cluster.pathOf(provider())),
    },
    {
      name: '`revokeTokensBefore` of the provider',
      strike: async () => {
        await nextSecond();
        const revokeTokensBefore = new Date(Math.floor(Date.now() / 1000) * 1000).toISOString();
        await cluster.apply(provider({ revokeTokensBefore }));
      },
      isWelcome: true,
    },
    {
      name: 'a local user that is disabled',
      signIn: signInByPassword,
      strike: () => disable(true),
    },
  ];

  describe('a kill switch → nothing holds, at both, and none of it where Redis has lost what was recorded since, or all', () => {
    it.for(cases)('$name', async ({ signIn = signInByProvider, strike, isWelcome = false }, context) => {
      const held = await signIn();
      expect(await isActive(second, held)).toBe(true);
      const restoreRedis = await copyOfRedis();
      const began = performance.now();
      await strike();
      await Promise.all(
        [first, second].map((server) =>
          until('introspection refuses', async () => !(await isActive(server, held)), PATIENCE),
        ),
      );
      await context.annotate(`it holds at both after ${Math.round(performance.now() - began)} ms`);
      for (const server of [second, first]) expect(await worksAt(server, held)).toEqual(NOTHING);
      await restoreRedis();
      for (const server of [second, first]) expect(await worksAt(server, held)).toEqual(NOTHING);
      await loseRedis();
      for (const server of [second, first]) expect(await worksAt(server, held)).toEqual(NOTHING);
      const signInOfAnother = signIn === signInByPassword ? signInByProvider : signInByPassword;
      await until('another person signs in', () => succeeds(signInOfAnother()));
      expect(await succeeds(signIn())).toBe(isWelcome);
    });
  });

  it('given an older Redis and no kill switch → all holds', async () => {
    const held = await signInByProvider();
    const restoreRedis = await copyOfRedis();
    const { accessToken } = await signInByPassword();
    await restoreRedis();
    expect(await isActive(second, { ...held, accessToken })).toBe(false);
    expect(await worksAt(second, held)).toEqual(ALL);
  });

  /** The lines about ends of sessions and notices of them, of each server after so many characters. */
  function endsSince(printed: readonly number[]): readonly string[] {
    const lines = outputs().flatMap((output, index) => output.slice(printed[index]).split('\n'));
    return lines.filter((line) => /"event":"(sessions?|logout)\./.test(line));
  }

  describe('a fault of the provider → sessions and refresh go on, and no logout is sent', () => {
    it.each<{ name: string; strike: () => Promise<unknown> }>([
      { name: 'its Secret is gone', strike: async () => cluster.call('DELETE', await cluster.pathOf(secret())) },
      { name: 'its certificate is broken', strike: () => cluster.apply(secret('no certificate')) },
      { name: 'its CA is another one', strike: () => cluster.apply(secret(maker.authority().certificate)) },
    ])('$name', async ({ strike }) => {
      const held = await signInByProvider();
      const printed = outputs().map(({ length }) => length);
      await strike();
      for (const server of [first, second]) {
        await until('no browser leaves for it', async () => (await leave(browserAt(server))) === undefined, PATIENCE);
      }
      expect(await worksAt(second, held)).toEqual(ALL);
      expect(await isActive(first, held)).toBe(true);
      expect(endsSince(printed)).toEqual([]);
    });
  });
});
