// kube-apiserver that takes the provider's ID tokens by its AuthenticationConfiguration, and kubectl that gets them by kubelogin,
// or refreshes them by itself.

import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CertificateMaker, type MadeCertificate } from '../client-certificates.ts';
import { ApiServer } from '../cluster/setup/api-server.ts';
import { freePort } from '../free-port.ts';
import { succeeds, until } from '../until.ts';
import { startGrantryProvider } from './setup/grantry-provider.ts';
import { describeConsumers } from './setup/programs.ts';
import { ALGORITHMS, type IdTokenAlgorithm, PERSON, type Provider } from './setup/provider.ts';
import { Visitor } from './setup/visitor.ts';

/** By the algorithm of their ID tokens. */
const CLIENT_IDS = { RS256: 'platform.kubectl', ES256: 'platform.kubectl-es256' };
const PREFIX = 'grantry:';

await describeConsumers(['kubernetes', 'kubelogin'], (assets, kubelogin) => {
  const maker = new CertificateMaker();
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
    const redirectUri = listens;
    const consumers = ALGORITHMS.map((algorithm) => ({ clientId: CLIENT_IDS[algorithm], redirectUri, algorithm }));
    provider = await startGrantryProvider({ consumers, tls: { certificate, authority } });
    const file = join(maker.folder, 'authentication.json');
    writeFileSync(file, JSON.stringify(authentication(provider.issuer, authority.certificate)));
    server = await ApiServer.start(assets, [`--authentication-config=${file}`]);
  });
  afterAll(async () => {
    await Promise.all([server?.stop(), provider?.stop()]);
    maker.remove();
  });

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

  function byKubelogin(algorithm: IdTokenAlgorithm, ...more: readonly string[]) {
    const args = [
      'get-token',
      `--oidc-issuer-url=${provider.issuer}`,
      `--oidc-client-id=${CLIENT_IDS[algorithm]}`,
      '--oidc-extra-scope=profile,email,groups',
      `--certificate-authority=${authority.certificateFile}`,
      `--token-cache-dir=${tokens}`,
      `--listen-address=${new URL(listens).host.replace('localhost', '127.0.0.1')}`,
      '--skip-open-browser',
      ...more,
    ];
    const apiVersion = 'client.authentication.k8s.io/v1';
    return { exec: { apiVersion, command: kubelogin, args, interactiveMode: 'Never' } };
  }

  /** By kubelogin without a token of before. */
  async function signIn(algorithm: IdTokenAlgorithm): Promise<unknown> {
    rmSync(tokens, { recursive: true, force: true });
    provider.setGroups(PERSON.groups);
    const answered = whoami(byKubelogin(algorithm));
    await until('kubelogin listens', () => succeeds(fetch(listens, { redirect: 'manual' })));
    await new Visitor(provider).visit(listens);
    return await answered;
  }

  const known = (groups: readonly string[]) => ({
    username: expect.stringMatching(`^${PREFIX}.+`),
    groups: expect.arrayContaining([...groups.map((group) => `${PREFIX}${group}`), 'system:authenticated']),
    extra: { 'grantry.dev/name': [PERSON.name] },
  });

  it.each(ALGORITHMS)(
    'given kubelogin as exec plugin, and %s → subject, groups and name at the API server',
    async (algorithm) => {
      expect(await signIn(algorithm)).toMatchObject(known(PERSON.groups));

      provider.setGroups(['auditors']);
      expect(await whoami(byKubelogin(algorithm, '--force-refresh'))).toMatchObject(known(['auditors']));
    },
  );

  it('given a refresh token in the provider `oidc` of kubectl → an ID token with the groups of now', async () => {
    await signIn('RS256');
    const [file = ''] = readdirSync(tokens).filter((name) => !name.endsWith('.lock'));
    const cached = JSON.parse(readFileSync(join(tokens, file), 'utf8')) as { refresh_token: string };
    provider.setGroups(['night-shift']);
    const config = {
      'client-id': CLIENT_IDS.RS256,
      'idp-issuer-url': provider.issuer,
      'idp-certificate-authority': authority.certificateFile,
      'refresh-token': cached.refresh_token,
    };
    expect(await whoami({ 'auth-provider': { name: 'oidc', config } })).toMatchObject(known(['night-shift']));
  });
});

/** As Kubernetes 1.34 reads it. */
function authentication(url: string, certificateAuthority: string) {
  return {
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'AuthenticationConfiguration',
    jwt: [
      {
        issuer: { url, audiences: Object.values(CLIENT_IDS), audienceMatchPolicy: 'MatchAny', certificateAuthority },
        claimMappings: {
          username: { claim: 'sub', prefix: PREFIX },
          groups: { claim: 'groups', prefix: PREFIX },
          extra: [{ key: 'grantry.dev/name', valueExpression: 'claims.name' }],
        },
      },
    ],
  };
}
