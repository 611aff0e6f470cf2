// kube-apiserver that takes grantry's ID tokens by the AuthenticationConfiguration of the examples, and kubectl that gets them by
// kubelogin, or refreshes them by itself.

import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { decodeProtectedHeader } from 'jose';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { CertificateMaker, type MadeCertificate } from '../client-certificates.ts';
import { ApiServer } from '../cluster/setup/api-server.ts';
import { freePort } from '../free-port.ts';
import { succeeds, until } from '../until.ts';
import { Dex } from './setup/dex.ts';
import { EXAMPLE_ISSUER, Examples } from './setup/examples.ts';
import { startGrantryProvider } from './setup/grantry-provider.ts';
import { KUBELOGIN_ADDRESS, kubeloginUser } from './setup/kubectl-user.ts';
import { describeConsumers } from './setup/programs.ts';
import { ALGORITHMS, type IdTokenAlgorithm, PERSON, type Provider } from './setup/provider.ts';
import { type AnsweredPages, Visitor } from './setup/visitor.ts';

const PREFIX = 'grantry:';

await describeConsumers(['kubernetes', 'kubelogin', 'dex'], (assets, kubelogin, dexProgram) => {
  const maker = new CertificateMaker();
  const examples = new Examples();
  const kubeconfig = join(maker.folder, 'kubeconfig');
  const tokens = join(maker.folder, 'tokens');
  let authority: MadeCertificate;
  let listens: string;
  let provider: Provider;
  let server: ApiServer;

  beforeAll(async () => {
    authority = maker.authority();
    const certificate = maker.make({ issuer: authority, extensions: ['subjectAltName=DNS:localhost'] });
    listens = `http://localhost:${await freePort()}`;
    provider = await startGrantryProvider({ tls: { certificate, authority } });
    await provider.publishSigningKey();
    const file = join(maker.folder, 'authentication.json');
    writeFileSync(file, JSON.stringify(authentication()));
    server = await ApiServer.start(assets, [`--authentication-config=${file}`]);
  });
  beforeEach(() => rmSync(tokens, { recursive: true, force: true }));
  afterAll(async () => {
    await Promise.all([server?.stop(), provider?.stop()]);
    maker.remove();
  });

  const addresses = () => ({ [KUBELOGIN_ADDRESS]: listens, [EXAMPLE_ISSUER]: provider.issuer });

  /** That of the examples, and the CA of a test. */
  function authentication(): object {
    const shown = parse(examples.file('kubernetes/authentication-config.yaml', addresses())) as {
      readonly jwt: readonly { readonly issuer: object }[];
    };
    const certificateAuthority = authority.certificate;
    return { ...shown, jwt: shown.jwt.map((each) => ({ ...each, issuer: { ...each.issuer, certificateAuthority } })) };
  }

  /** What kube-apiserver takes its caller for, by a kubeconfig with this user. */
  async function whoami(user: object): Promise<unknown> {
    const { url, certificateFile } = server.address;
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'test', cluster: { server: url, 'certificate-authority': certificateFile } }],
      users: [{ name: 'person', user }],
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'person' } }],
      'current-context': 'test',
    };
    writeFileSync(kubeconfig, JSON.stringify(config));
    const words = ['--kubeconfig', kubeconfig, 'auth', 'whoami', '-o', 'json'];
    const { stdout } = await promisify(execFile)(join(assets, 'kubectl'), words);
    return (JSON.parse(stdout) as { status: { userInfo: unknown } }).status.userInfo;
  }

  function byKubelogin(...more: readonly string[]): object {
    const place = { program: kubelogin, address: listens, tokens, certificateFile: authority.certificateFile };
    return kubeloginUser(examples.file('kubernetes/kubeconfig.yaml', addresses()), place, ...more);
  }

  /** By kubelogin without a token of before. @param others as of {@link Visitor} */
  async function signIn(...others: readonly AnsweredPages[]): Promise<unknown> {
    const answered = whoami(byKubelogin());
    await until('kubelogin listens', () => succeeds(fetch(listens, { redirect: 'manual' })));
    await new Visitor(provider, ...others).visit(listens);
    return await answered;
  }

  /** The tokens that kubelogin keeps. */
  function kept(): { readonly id_token: string; readonly refresh_token: string } {
    const [file = ''] = readdirSync(tokens).filter((name) => !name.endsWith('.lock'));
    return JSON.parse(readFileSync(join(tokens, file), 'utf8'));
  }

  /** By the provider `oidc` of kubectl, which has no more than what it needs for a refresh. */
  function byRefreshToken(): object {
    const config = {
      'client-id': 'platform.kubectl',
      'idp-issuer-url': provider.issuer,
      'idp-certificate-authority': authority.certificateFile,
      'refresh-token': kept().refresh_token,
    };
    return { 'auth-provider': { name: 'oidc', config } };
  }

  const known = (groups: readonly string[]) => ({
    username: expect.stringMatching(`^${PREFIX}.+`),
    groups: expect.arrayContaining([...groups.map((group) => `${PREFIX}${group}`), 'system:authenticated']),
    extra: { 'grantry.dev/name': [PERSON.name] },
  });

  async function signWith(algorithm: IdTokenAlgorithm): Promise<void> {
    const spec = { tokens: { idTokenSigningAlgorithm: algorithm } };
    provider.setClients([(await examples.client('kubernetes', { addresses: addresses(), spec })).client]);
  }

  beforeEach(() => {
    provider.setGroups(PERSON.groups);
    provider.setName(PERSON.name);
  });

  describe.each(ALGORITHMS)('with ID tokens by %s', (algorithm) => {
    beforeEach(() => signWith(algorithm));

    it('given kubelogin → subject, groups and name at the API server, and a changed group after a refresh', async () => {
      const person = await signIn();
      expect(person).toMatchObject(known(PERSON.groups));
      expect(decodeProtectedHeader(kept().id_token)).toMatchObject({ alg: algorithm });
      expect(await whoami(byKubelogin())).toEqual(person);

      provider.setGroups(['auditors']);
      expect(await whoami(byKubelogin('--force-refresh'))).toMatchObject(known(['auditors']));
    });

    it('given a refresh token in the provider `oidc` of kubectl → an ID token with the groups of now', async () => {
      await signIn();
      provider.setGroups(['night-shift']);
      expect(await whoami(byRefreshToken())).toMatchObject(known(['night-shift']));
    });
  });

  it('given a person without a name → known without it', async () => {
    await signWith('RS256');
    provider.setName(undefined);
    expect(await signIn()).toMatchObject({ username: expect.stringMatching(`^${PREFIX}.+`), groups: known([]).groups });
    expect(await whoami(byKubelogin())).not.toHaveProperty(['extra', 'grantry.dev/name']);
  });

  describe('given a person of another identity provider, with groups of local users and of the cluster', () => {
    const groups = [...PERSON.groups, 'system:masters'];
    let dex: Dex;
    beforeAll(async () => {
      dex = await Dex.start({ program: dexProgram, callback: `${provider.issuer}/login/callback/dex`, groups });
    });
    afterAll(() => dex?.stop());
    afterEach(() => provider.setIdentityProviders([]));

    it.each(['dex:', ''])(
      '→ each has the prefix "%s" behind that of the API server, and a subject of its own',
      async (prefix) => {
        await signWith('RS256');
        const local = (await signIn()) as { readonly username: string };
        rmSync(tokens, { recursive: true, force: true });
        await provider.setIdentityProviders([
          dex.identityProvider({ groups: { include: ['**'], prefix, allowCommas: false } }),
        ]);
        const person = (await signIn(dex)) as { readonly username: string; readonly groups: readonly string[] };
        expect(person.groups.toSorted()).toEqual(
          [...groups.map((group) => `${PREFIX}${prefix}${group}`), 'system:authenticated'].toSorted(),
        );
        expect(person.username).toMatch(/^grantry:usr_/);
        expect(person.username).not.toBe(local.username);
      },
    );
  });

  // It keeps a key set as long as that may be cached, and looks for no unknown key before: the next ones are published early.
  it('given new signing keys that it fetched before they sign → old and new ID tokens by each algorithm', async () => {
    await signWith('RS256');
    const person = await signIn();
    await provider.rotateSigningKey();
    expect(await whoami(byKubelogin())).toEqual(person);
    for (const algorithm of ALGORITHMS) {
      await signWith(algorithm);
      expect(await whoami(byKubelogin('--force-refresh'))).toMatchObject(known(PERSON.groups));
    }
    expect(await whoami(byRefreshToken())).toMatchObject(known(PERSON.groups));
  });
});
