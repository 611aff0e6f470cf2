import { chmod, cp, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { decodeJwt, decodeProtectedHeader } from 'jose';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { json, ScriptedProvider } from '../../login/upstream/scripted-provider.ts';
import { folderOfTest, machineClient } from '../../manifests/a-folder.ts';
import { asserted, assertionOf } from '../../oauth/client-auth/client-assertions.ts';
import { aKey } from '../../oauth/values/signed-tokens.ts';
import { until } from '../../until.ts';
import { endProcesses, GrantryProcess, grantry, post, shell, startDev, takenPort } from '../grantry-process.ts';

afterEach(endProcesses);

/** A client whose requests may leave out `scope`. */
function job(extra = ''): string {
  return machineClient('job', `  scopes: [default/read]\n  defaultScopes: [default/read]\n${extra}`);
}

const CLIENT = { 'job.yaml': job() };
const CLIENT_CREDENTIALS = { grant_type: 'client_credentials' };

function secretOf(folder: string, client = 'default.job'): Promise<string> {
  return readFile(join(folder, `.grantry/secrets/${client}.secret`), 'utf8').then((text) => text.trimEnd());
}

async function tokenOf(folder: string, issuer: string): Promise<string> {
  const { body } = await post(`${issuer}/token`, CLIENT_CREDENTIALS, `default.job:${await secretOf(folder)}`);
  return String(body.access_token);
}

async function keysOf(issuer: string): Promise<readonly { readonly kid: string; readonly alg: string }[]> {
  const response = await fetch(`${issuer}/.well-known/jwks.json`);
  return ((await response.json()) as { keys: readonly { kid: string; alg: string }[] }).keys;
}

async function isActive(folder: string, issuer: string, token: string): Promise<unknown> {
  const { body } = await post(`${issuer}/introspect`, { token }, `default.job:${await secretOf(folder)}`);
  return body.active;
}

describe('grantry dev at its start', () => {
  it('serves the quickstart, and the curl line it prints works as pasted', async () => {
    const folder = await folderOfTest({});
    await cp('examples/quickstart', folder, { recursive: true, filter: (path) => !path.includes('.grantry') });
    const { grantry, issuer } = await startDev(folder);
    const [line = ''] = await grantry.printed(/^ +curl .*\$\(cat .*$/m);
    expect(JSON.parse(await shell(line))).toMatchObject({ token_type: 'Bearer', expires_in: 600 });
    const [, metadata = ''] = await grantry.printed(/Metadata +(\S+)/);
    expect(await (await fetch(metadata)).json()).toMatchObject({ issuer });
    for (const client of ['report-job', 'web-app', 'native-app', 'notes-cli', 'notes-api', 'notes-web']) {
      expect(grantry.output).toMatch(new RegExp(`^ +default\\.${client} .* Ready$`, 'm'));
    }
    expect(grantry.output).toMatch(/Users +demo with the password demo/);
  });

  it('prints a curl line that works from a folder with spaces and quotes, for secrets in the body, with a scope', async () => {
    const odd = 'it\'s a "folder" $HOME';
    const extra = '  auth: {method: client_secret_post}\n  scopes: [default/read]\n';
    const parent = await folderOfTest({ [`${odd}/job.yaml`]: machineClient('job', extra) });
    const { grantry } = await startDev(odd, [], { cwd: parent });
    const [line = ''] = await grantry.printed(/^ +curl .*$/m);
    expect(JSON.parse(await shell(line, parent))).toMatchObject({ scope: 'default/read' });
  });

  it('names the reason of a client that is refused, and where', async () => {
    const folder = await folderOfTest({
      'a.yaml': machineClient('job', '  scopes: [other/read]\n'),
      'b.yaml': machineClient('later', '  suspended: true\n'),
    });
    const { grantry } = await startDev(folder);
    await grantry.printed(/^ +default\.job .* PolicyViolation$/m);
    await grantry.printed(/^ +default\.later .* Suspended$/m);
    // No fault of a file says it.
    await grantry.printed(/^default\.later: Suspended: \S/m);
    await grantry.printed(/a\.yaml:7 \(document 1, spec\.scopes\[0\]\): PolicyViolation/);
  });

  it('given identity providers → names those that are accepted and where others have a fault; each change is reported', async () => {
    const provider = (issuer: string) =>
      `apiVersion: grantry.dev/v1alpha1\nkind: IdentityProvider\nmetadata: {name: dex}\nspec:\n  type: OIDC\n  clientSecretRef: {name: dex}\n  oidc: {issuer: '${issuer}'}\n`;
    const secret = (type: string) =>
      `apiVersion: v1\nkind: Secret\nmetadata: {name: dex}\ntype: ${type}\nstringData: {client-id: grantry, client-secret: of-dex}\n`;
    const folder = await folderOfTest({
      ...CLIENT,
      'dex.yaml': provider('http://127.0.0.1:5556/dex'),
      'secret.yaml': secret('grantry.dev/identity-provider'),
      'elsewhere.yaml': provider('https://id.example').replace('name: dex', 'name: elsewhere, namespace: team'),
    });
    const { grantry, issuer } = await startDev(folder);
    const [line = ''] = await grantry.printed(/^ +Provider +dex, .*$/m);
    expect(line).toContain(`${issuer}/login/callback/dex`);
    await grantry.printed(/elsewhere\.yaml:3 \(document 1, metadata\.namespace\): NamespaceNotHonoured: /m);
    await writeFile(join(folder, 'secret.yaml'), secret('Opaque'));
    await grantry.printed(/IdentityProvider default\/dex is refused: SecretTypeMismatch/);
    await writeFile(join(folder, 'secret.yaml'), secret('grantry.dev/identity-provider'));
    await grantry.printed(/IdentityProvider default\/dex \(OIDC\) is accepted/);
    await writeFile(join(folder, 'dex.yaml'), provider('http://dex.example'));
    await grantry.printed(/dex\.yaml:7 \(document 1, spec\.oidc\.issuer\): InvalidManifest/);
    expect(grantry.output).not.toContain('of-dex');
  });

  it('given an identity provider that cannot be used → the cause on one line at the start and at each change, without a secret', async () => {
    const upstream = await ScriptedProvider.start();
    onTestFinished(() => upstream.stop());
    const answerToken = (error: string) =>
      upstream.answers.set('/token', (_request, response) => json(response, { error }, 400));
    const provider = (issuer: string) =>
      `apiVersion: grantry.dev/v1alpha1\nkind: IdentityProvider\nmetadata: {name: corp}\nspec:\n  type: OIDC\n  clientSecretRef: {name: corp}\n  oidc: {issuer: '${issuer}'}\n`;
    const secret = (value: string) =>
      `apiVersion: v1\nkind: Secret\nmetadata: {name: corp}\ntype: grantry.dev/identity-provider\nstringData: {client-id: grantry, client-secret: ${value}}\n`;
    answerToken('invalid_client');
    const folder = await folderOfTest({
      ...CLIENT,
      'corp.yaml': provider(upstream.issuer),
      'secret.yaml': secret('wrong-secret'),
    });
    const { grantry } = await startDev(folder, [], { environment: { GRANTRY_LOG_FORMAT: 'pretty' } });
    const unusable = (detail: string) =>
      new RegExp(`people cannot sign in by the identity provider provider="corp" .*detail="${detail}`);
    await grantry.printed(unusable('the token endpoint answered invalid_client'));
    answerToken('invalid_grant');
    await writeFile(join(folder, 'secret.yaml'), secret('right-secret'));
    await grantry.printed(/the identity provider is reached provider="corp"/);
    await writeFile(join(folder, 'corp.yaml'), provider(`${upstream.issuer}/`));
    await grantry.printed(unusable(`the document names the issuer ${upstream.issuer}"`));
    expect(grantry.output).not.toMatch(/(wrong|right)-secret/);
  });

  it('given a key host by a short name → it is looked up by the system, search domains and all', async () => {
    const auth = '  auth: { method: private_key_jwt, privateKeyJwt: { jwksUri: "https://reports/jwks.json" } }\n';
    const policy = `apiVersion: grantry.dev/v1alpha1
kind: ClientPolicy
metadata: { name: default }
spec:
  namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: default } }
  allow: { authMethods: [private_key_jwt], jwksHosts: [reports], grantTypes: [client_credentials] }
`;
    const folder = await folderOfTest({ 'job.yaml': machineClient('job', auth), 'policy.yaml': policy });
    const { grantry, issuer } = await startDev(folder);
    const assertion = await assertionOf(aKey('ES256'), { clientId: 'default.job', issuer, now: Date.now() });
    const { status } = await post(`${issuer}/token`, { ...CLIENT_CREDENTIALS, ...asserted(assertion) });
    expect(status).toBe(503);
    const [line] = await grantry.printed(/.*the key set of a client cannot be fetched.*/);
    expect(line).not.toContain('search domains do not apply');
  });

  it('takes the first free admin port, and readiness says so there', async () => {
    const folder = await folderOfTest(CLIENT);
    const first = await startDev(folder);
    const second = await startDev(folder);
    expect(second.admin).not.toBe(first.admin);
    expect((await fetch(`${second.admin}/readyz`)).status).toBe(200);
    expect((await fetch(`${second.issuer}/readyz`)).status).toBe(404);
  });

  it('audits its clients and the key that signs', async () => {
    const folder = await folderOfTest(CLIENT);
    const { grantry, issuer } = await startDev(folder, [], { environment: { GRANTRY_LOG_FORMAT: 'json' } });
    const [key] = await keysOf(issuer);
    await grantry.printed(/"event":"client\.accepted","clientId":"default\.job"/);
    await grantry.printed(new RegExp(`"event":"key\\.activated","keyId":"${key?.kid}"`));
    // The report on the terminal comes first.
    expect(grantry.output).toMatch(/^grantry serves /);
  });

  it('ends with 0 on SIGTERM and on SIGINT', async () => {
    const folder = await folderOfTest(CLIENT);
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      const { grantry } = await startDev(folder);
      expect(await grantry.end(signal)).toBe(0);
    }
  });
});

describe('grantry dev that cannot start', () => {
  it('says in one sentence that its port is in use, and ends with 1', async () => {
    const folder = await folderOfTest(CLIENT);
    using taken = await takenPort();
    for (const flags of [
      ['--port', `${taken.port}`],
      ['--port', '0', '--admin-port', `${taken.port}`],
    ]) {
      const { code, output, errors } = await grantry(['dev', folder, ...flags]);
      expect([code, output]).toEqual([1, '']);
      expect(errors).toMatch(new RegExp(`^grantry dev: .*port ${taken.port} .* in use.*\\n$`));
    }
  });

  it('says how another port is given to npm start when that started it', async () => {
    using taken = await takenPort();
    const folder = await folderOfTest(CLIENT);
    const environment = { npm_lifecycle_event: 'start' };
    const { errors } = await grantry(['dev', folder, '--port', `${taken.port}`], { environment });
    expect(errors).toContain('npm start -- --port');
  });

  it.each([
    ['a folder that is not there', ['nowhere']],
    ['a file instead of a folder', ['package.json']],
    ['a user without a password', ['.', '--user', 'ann']],
    ['an issuer that is none', ['.', '--issuer', 'http://example.com/']],
  ])('ends with 2 and one line for %s', async (_, args) => {
    const { code, output, errors } = await grantry(['dev', ...args]);
    expect([code, output, errors.trimEnd().split('\n').length]).toEqual([2, '', 1]);
  });

  it('refuses a misspelt variable by the nearest name', async () => {
    const { code, errors } = await grantry(['dev', '.'], { environment: { GRANTRY_LOG_LEVLE: 'info' } });
    expect(code).toBe(2);
    expect(errors).toContain('GRANTRY_LOG_LEVEL?');
  });
});

describe('a kept key that is damaged', () => {
  const KEY = '.grantry/keys/default.default.ES256.1.pem';

  it('stops the start with one line that names it, and no other key takes its place', async () => {
    const folder = await folderOfTest(CLIENT);
    const started = await startDev(folder);
    const token = await tokenOf(folder, started.issuer);
    const port = new URL(started.issuer).port;
    await started.grantry.end();
    const good = await readFile(join(folder, KEY), 'utf8');
    const keyFiles = await readdir(join(folder, '.grantry/keys'));
    expect(keyFiles).toEqual(['default.default-rs256.RS256-2048.1.pem', 'default.default.ES256.1.pem']);
    await writeFile(join(folder, KEY), 'garbage\n');
    const { code, output, errors } = await grantry(['dev', folder, '--port', port]);
    expect([code, output, errors.trimEnd().split('\n').length]).toEqual([1, '', 1]);
    expect(errors).toContain(KEY);
    expect(errors).not.toContain('garbage');
    expect(await readdir(join(folder, '.grantry/keys'))).toEqual(keyFiles);
    await writeFile(join(folder, KEY), good);
    const again = await startDev(folder, ['--port', port]);
    expect(await isActive(folder, again.issuer, token)).toBe(true);
  });

  it('stops the start also when it only verifies', async () => {
    const folder = await folderOfTest({ ...CLIENT, 'key.yaml': signingKey('EdDSA') });
    await mkdir(join(folder, '.grantry/keys'), { recursive: true, mode: 0o700 });
    await writeFile(join(folder, '.grantry/keys/default.main.RS256-3072.1.pem'), 'garbage\n');
    const { code, errors } = await grantry(['dev', folder, '--port', '0']);
    expect([code, errors]).toEqual([1, expect.stringContaining('default.main.RS256-3072.1.pem')]);
  });

  it('leaves the keys of a running server as they were, and is named with its place', async () => {
    const folder = await folderOfTest(CLIENT);
    const { grantry, issuer } = await startDev(folder);
    const token = await tokenOf(folder, issuer);
    const keys = await keysOf(issuer);
    await writeFile(join(folder, KEY), 'garbage\n');
    await writeFile(join(folder, 'new.yaml'), machineClient('new-job'));
    await grantry.printed(/default\.default\.ES256\.1\.pem: InvalidKeyMaterial/);
    await grantry.printed(/ default\.new-job is accepted/);
    expect(await keysOf(issuer)).toEqual(keys);
    expect(await isActive(folder, issuer, token)).toBe(true);
  });
});

describe('a change of the folder', () => {
  it('of a resource → the client that refers to it has what the owner grants now', async () => {
    const resource = (scopes: string) =>
      `apiVersion: grantry.dev/v1alpha1\nkind: ProtectedResource\nmetadata: {name: notes}\nspec:\n  scopes: [${scopes}]\n`;
    const refers = '  defaultScopes: [default/read]\n  resources: [{name: notes}]\n';
    const both = '{name: default/read}, {name: default/write}';
    const folder = await folderOfTest({ 'job.yaml': machineClient('job', refers), 'notes.yaml': resource(both) });
    const { issuer } = await startDev(folder);
    const secret = await secretOf(folder);
    const asked = async (scope: string) =>
      (await post(`${issuer}/token`, { ...CLIENT_CREDENTIALS, scope }, `default.job:${secret}`)).body;
    const { access_token: token, scope } = await asked('default/read default/write');
    expect([scope, decodeJwt(String(token)).aud]).toEqual([
      'default/read default/write',
      'urn:grantry:ns:default:notes',
    ]);
    await writeFile(join(folder, 'notes.yaml'), resource('{name: default/read}'));
    await until('the scope is gone', async () => (await asked('default/write')).error === 'invalid_scope');
    await rm(join(folder, 'notes.yaml'));
    await until('the resource is gone', async () => (await asked('default/read')).access_token === undefined);
  });

  it('of allowedClients → a line when the grant begins and when it ends', async () => {
    const resource = (allowed: string) =>
      `apiVersion: grantry.dev/v1alpha1\nkind: ProtectedResource\nmetadata: {name: notes, namespace: owner}\nspec:\n  scopes: [{name: owner/read}]\n  allowedClients: [${allowed}]\n`;
    const policy = `apiVersion: grantry.dev/v1alpha1\nkind: ClientPolicy\nmetadata: {name: wide}\nspec:\n  namespaceSelector: {}\n  allow: {scopes: ['**'], resources: ['**']}\n`;
    const folder = await folderOfTest({
      'job.yaml': machineClient(
        'job',
        '  defaultScopes: [owner/read]\n  resources: [{namespace: owner, name: notes}]\n',
      ),
      'notes.yaml': resource(''),
      'policy.yaml': policy,
    });
    const { grantry } = await startDev(folder);
    await writeFile(join(folder, 'notes.yaml'), resource('{namespaces: [default]}'));
    await grantry.printed(/ default\.job: ResourcesGranted is True: /);
    await writeFile(join(folder, 'notes.yaml'), resource(''));
    await grantry.printed(/ default\.job: ResourcesGranted is False: /);
    expect(grantry.output.match(/ResourcesGranted/g)).toHaveLength(2);
  });

  it('that makes a resource faulty → its restrictions stay until it is deleted, and it is granted once it is mended', async () => {
    const resource = (scopes: string) =>
      `apiVersion: grantry.dev/v1alpha1\nkind: ProtectedResource\nmetadata: {name: notes}\nspec:\n  scopes: [${scopes}]\n  tokens: {maxLifetime: 1m}\n`;
    const AUDIENCE = 'urn:grantry:ns:default:notes';
    const SOUND = '{name: default/read}';
    const listed = machineClient('listed', `  audiences: ['${AUDIENCE}']\n  scopes: [default/read, default/write]\n`);
    const folder = await folderOfTest({
      'listed.yaml': listed,
      'referring.yaml': machineClient('referring', '  defaultScopes: [default/read]\n  resources: [{name: notes}]\n'),
      'notes.yaml': resource(SOUND),
    });
    const { issuer } = await startDev(folder);
    const askedBy = async (name: string, scope: string) => {
      const secret = await secretOf(folder, `default.${name}`);
      return (await post(`${issuer}/token`, { ...CLIENT_CREDENTIALS, scope }, `default.${name}:${secret}`)).body;
    };
    const isGranted = async () => (await askedBy('referring', 'default/read')).access_token !== undefined;
    const whatListedHas = async () => [
      (await askedBy('listed', 'default/read')).expires_in,
      (await askedBy('listed', 'default/write')).error,
    ];
    const RESTRICTED = [60, 'invalid_scope'];
    expect([await isGranted(), await whatListedHas()]).toEqual([true, RESTRICTED]);
    await writeFile(join(folder, 'notes.yaml'), resource(`${SOUND}, {name: openid}`));
    await until('it is refused', async () => !(await isGranted()));
    expect(await whatListedHas()).toEqual(RESTRICTED);
    await writeFile(join(folder, 'notes.yaml'), resource(SOUND));
    await until('it is granted', isGranted);
    await rm(join(folder, 'notes.yaml'));
    await until('it restricts nothing', async () => (await whatListedHas())[1] === undefined);
  });

  it('is served within 200 ms', async () => {
    const folder = await folderOfTest(CLIENT);
    const { issuer } = await startDev(folder);
    const secret = await secretOf(folder);
    const servedAfter = async (lifetime: number): Promise<number> => {
      // Nothing of the change before is left to be noticed.
      await sleep(150);
      const begin = performance.now();
      await writeFile(join(folder, 'job.yaml'), job(`  tokens: {accessTokenLifetime: ${lifetime}s}\n`));
      for (;;) {
        const { body } = await post(`${issuer}/token`, CLIENT_CREDENTIALS, `default.job:${secret}`);
        const milliseconds = performance.now() - begin;
        if (body.expires_in === lifetime) return milliseconds;
        expect(milliseconds).toBeLessThan(10_000);
        await sleep(5);
      }
    };
    let lifetime = 60;
    let median = Number.POSITIVE_INFINITY;
    // Other tests may keep the machine busy for a while: then the whole set is taken again, never a single change.
    for (let set = 1; set <= 8 && median >= 200; set++) {
      const times: number[] = [];
      while (times.length < 7) times.push(await servedAfter(++lifetime));
      median = times.sort((a, b) => a - b)[3] ?? median;
    }
    expect(median).toBeLessThan(200);
  });

  it('adds, refuses and removes clients, and each is printed and audited', async () => {
    const folder = await folderOfTest({});
    const { grantry, issuer } = await startDev(folder, [], { environment: { GRANTRY_LOG_FORMAT: 'json' } });
    await writeFile(join(folder, 'job.yaml'), job());
    await grantry.printed(/ default\.job is accepted/);
    await grantry.printed(/"event":"client\.accepted","clientId":"default\.job"/);
    const token = await tokenOf(folder, issuer);
    await writeFile(
      join(folder, 'job.yaml'),
      machineClient('job', '  grantTypes: [password]\n').replace('  grantTypes: [client_credentials]\n', ''),
    );
    await grantry.printed(/ default\.job is refused: UnsupportedGrantType/);
    await grantry.printed(/job\.yaml:6 \(document 1, spec\.grantTypes\[0\]\): UnsupportedGrantType/);
    await grantry.printed(/"event":"client\.refused","clientId":"default\.job","reason":"UnsupportedGrantType"/);
    const { status } = await post(`${issuer}/introspect`, { token }, `default.job:${await secretOf(folder)}`);
    expect(status).toBe(401);
    await rm(join(folder, 'job.yaml'));
    await grantry.printed(/ default\.job was removed/);
    await grantry.printed(/"event":"client\.removed","clientId":"default\.job"/);
  });

  it('is served for every client whose secret can be kept, and the one whose cannot is named with its place', async () => {
    const folder = await folderOfTest(CLIENT);
    const { grantry, issuer } = await startDev(folder);
    await mkdir(join(folder, '.grantry/secrets/default.new-job.yaml'));
    await mkdir(join(folder, '.grantry/secrets/default.lost-job.secret'));
    await writeFile(join(folder, 'new.yaml'), machineClient('new-job'));
    await grantry.printed(/ default\.new-job is accepted/);
    await grantry.printed(/new\.yaml:1 \(document 1\): SecretWriteForbidden/);
    expect(grantry.output).not.toContain('nothing changed');
    await writeFile(join(folder, 'lost.yaml'), machineClient('lost-job'));
    await grantry.printed(/lost\.yaml:1 \(document 1\): SecretWriteForbidden/);
    await writeFile(join(folder, 'later.yaml'), machineClient('later-job'));
    await grantry.printed(/ default\.later-job is accepted/);
    const newSecret = await secretOf(folder, 'default.new-job');
    expect((await post(`${issuer}/introspect`, { token: 'x' }, `default.new-job:${newSecret}`)).status).toBe(200);
    await grantry.end();
    const again = await startDev(folder);
    await again.grantry.printed(/new\.yaml:1 \(document 1\): SecretWriteForbidden/);
    await again.grantry.printed(/ default\.job .* Ready/);
  });

  it('is counted: clients that are served and refused, and how long each swap took', async () => {
    const folder = await folderOfTest({ ...CLIENT, 'odd.yaml': machineClient('odd', '  scopes: [other/read]\n') });
    const { grantry, admin } = await startDev(folder);
    const metrics = async () => await (await fetch(`${admin}/metrics`)).text();
    const first = await metrics();
    expect(first).toContain('grantry_registry_clients{state="admitted"} 1\n');
    expect(first).toContain('grantry_registry_clients{state="refused"} 1\n');
    // The keys and secrets of the first start may be one change or more by then.
    const swaps = (text: string) => Number(text.match(/^grantry_registry_swap_duration_seconds_count (\d+)$/m)?.[1]);
    expect(swaps(first)).toBeGreaterThanOrEqual(1);
    await writeFile(join(folder, 'odd.yaml'), machineClient('odd'));
    await grantry.printed(/ default\.odd is accepted/);
    const second = await metrics();
    expect(second).toContain('grantry_registry_clients{state="refused"} 0\n');
    expect(swaps(second)).toBeGreaterThan(swaps(first));
  });

  it('that breaks a file keeps its last good state and names file, document, line and field', async () => {
    const folder = await folderOfTest(CLIENT);
    const { grantry, issuer } = await startDev(folder);
    const token = await tokenOf(folder, issuer);
    await writeFile(join(folder, 'job.yaml'), `---\n${machineClient('job', '  scopes: [read, 5]\n')}`);
    await grantry.printed(/job\.yaml:8 \(document 1, spec\.scopes\[1\]\): InvalidManifest/);
    await writeFile(join(folder, 'job.yaml'), 'kind: [');
    await grantry.printed(/job\.yaml:1 \(document 1\): InvalidYaml/);
    expect(await isActive(folder, issuer, token)).toBe(true);
    await writeFile(join(folder, 'job.yaml'), job());
    await grantry.printed(/job\.yaml is good again/);
  });

  it('of any other kind cannot end the server', async () => {
    const folder = await folderOfTest(CLIENT);
    const { grantry, issuer } = await startDev(folder);
    const odd = [
      'null',
      '[]',
      'kind: OAuthClient\napiVersion: grantry.dev/v1alpha1\nmetadata: {name: x}\nspec: 5',
      `${machineClient('x')}  auth: {clientSecret: {source: Existing, secretName: job}}\n---\nkind: Secret\napiVersion: v1\nmetadata: {name: job}\nstringData: [1]`,
      'kind: ClientPolicy\napiVersion: grantry.dev/v1alpha1\nmetadata: {name: x}\nspec: {className: 5, namespaceSelector: {}}',
      'kind: SigningKey\napiVersion: grantry.dev/v1alpha1\nmetadata: {name: default, namespace: other}\nspec: {algorithm: [1]}',
      'kind: Secret\napiVersion: v1\ntype: grantry.dev/users\nmetadata: {name: u}\nstringData: {users.yaml: "{"}',
      'kind: Namespace\napiVersion: v1\nmetadata: {name: default, labels: [x]}',
      '\0\u0001',
    ];
    for (const [index, text] of odd.entries()) await writeFile(join(folder, `odd${index}.yaml`), text);
    await grantry.printed(/odd8\.yaml.*Invalid/);
    expect((await fetch(`${issuer}/.well-known/jwks.json`)).status).toBe(200);
    for (const index of odd.keys()) await rm(join(folder, `odd${index}.yaml`));
    await until('it gives tokens', async () => (await tokenOf(folder, issuer)).includes('.'));
  });
});

describe('what grantry dev keeps beside the manifests', () => {
  it('lets tokens, keys and secrets outlive a restart', async () => {
    const folder = await folderOfTest(CLIENT);
    const one = await startDev(folder);
    const port = new URL(one.issuer).port;
    const token = await tokenOf(folder, one.issuer);
    const secret = await secretOf(folder);
    await one.grantry.end();
    const again = new GrantryProcess(['dev', folder, '--port', port]);
    await again.printed(/Issuer/);
    expect(await secretOf(folder)).toBe(secret);
    expect(await isActive(folder, one.issuer, token)).toBe(true);
  });

  it('lets what was revoked stay revoked', async () => {
    const folder = await folderOfTest(CLIENT);
    const one = await startDev(folder);
    const [revoked, other] = [await tokenOf(folder, one.issuer), await tokenOf(folder, one.issuer)];
    const authorization = `Basic ${btoa(`default.job:${await secretOf(folder)}`)}`;
    const body = new URLSearchParams({ token: revoked });
    await fetch(`${one.issuer}/revoke`, { method: 'POST', headers: { authorization }, body });
    await one.grantry.end();
    const again = new GrantryProcess(['dev', folder, '--port', new URL(one.issuer).port]);
    await again.printed(/Issuer/);
    const active = [await isActive(folder, one.issuer, revoked), await isActive(folder, one.issuer, other)];
    expect(active).toEqual([false, true]);
  });

  it('can be read by its owner only, and Git ignores all of it', async () => {
    const folder = await folderOfTest(CLIENT);
    const { grantry } = await startDev(folder);
    await grantry.end();
    const state = join(folder, '.grantry');
    expect(await readFile(join(state, '.gitignore'), 'utf8')).toBe('*\n');
    for (const entry of ['', ...(await readdir(state, { recursive: true }))]) {
      const found = await stat(join(state, entry));
      expect([entry, found.mode & 0o777]).toEqual([entry, found.isDirectory() ? 0o700 : 0o600]);
    }
  });

  it('holds the Secret that the cluster would write, with renamed keys and further literals', async () => {
    const clientSecret = `clientSecret:
      secretName: job-env
      keys: {clientId: CLIENT_ID, clientSecret: CLIENT_SECRET, issuer: ISSUER}
      extraData: {url: 'curl -u \${CLIENT_ID}:\${CLIENT_SECRET} \${TOKEN_ENDPOINT}'}
      randomKeys: [cookie]
      secretTemplate: {labels: {app: job}}`;
    const folder = await folderOfTest({ 'job.yaml': job(`  auth:\n    ${clientSecret}\n`) });
    const { issuer, grantry } = await startDev(folder);
    const read = async () => parse(await readFile(join(folder, '.grantry/secrets/default.job.yaml'), 'utf8'));
    const secret = await secretOf(folder);
    const written = await read();
    expect(written).toMatchObject({
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'Opaque',
      metadata: { name: 'job-env', namespace: 'default', labels: { app: 'job', 'grantry.dev/client': 'job' } },
      stringData: {
        CLIENT_ID: 'default.job',
        CLIENT_SECRET: secret,
        ISSUER: issuer,
        url: `curl -u default.job:${secret} ${issuer}/token`,
      },
    });
    await grantry.end();
    await startDev(folder);
    expect((await read()).stringData.cookie).toBe(written.stringData.cookie);
  });

  it('is the same for two that start at the same moment', async () => {
    const folder = await folderOfTest(CLIENT);
    const [one, two] = await Promise.all([startDev(folder), startDev(folder)]);
    expect(await keysOf(one.issuer)).toEqual(await keysOf(two.issuer));
    for (const { issuer } of [one, two]) expect(await tokenOf(folder, issuer)).toMatch(/\./);
  });

  it('stays in memory where the folder cannot be written, and that is said', async () => {
    const folder = await folderOfTest(CLIENT);
    await chmod(folder, 0o555);
    const isRoot = process.getuid?.() === 0;
    const { grantry, issuer } = await startDev(folder, [], isRoot ? { uid: 65_534 } : {});
    expect(grantry.output).toMatch(/cannot be written \(E\w+\).*in memory/);
    expect(grantry.output).toMatch(/default\.job .* Ready/);
    expect(await keysOf(issuer)).toHaveLength(2);
    expect(await readdir(folder)).toEqual(['job.yaml']);
    await chmod(folder, 0o755);
  });

  it('is not written for a client with an existing secret', async () => {
    const folder = await folderOfTest(CLIENT);
    const { grantry } = await startDev(folder);
    await rm(join(folder, '.grantry/secrets/default.job.yaml'));
    const own = `apiVersion: v1\nkind: Secret\nmetadata: {name: own}\nstringData: {client-secret: ${'s'.repeat(40)}}\n`;
    const auth = '  auth: {clientSecret: {source: Existing, secretName: own}}\n';
    await writeFile(join(folder, 'job.yaml'), `${job(auth)}---\n${own}`);
    await grantry.printed(/ default\.job was changed/);
    expect(await readdir(join(folder, '.grantry/secrets'))).toEqual(['default.job.secret']);
  });

  it('never shows in any output', async () => {
    const folder = await folderOfTest({ ...CLIENT, 'k.yaml': signingKey('RS256') });
    const { grantry, issuer } = await startDev(folder, ['--user', 'ann:a-long-password']);
    const token = await tokenOf(folder, issuer);
    await writeFile(join(folder, 'job.yaml'), machineClient('job', '  scopes: [5]\n'));
    await grantry.printed(/InvalidManifest/);
    await grantry.end();
    const state = join(folder, '.grantry');
    const seen = grantry.output + grantry.errors;
    const kept = await Promise.all(
      (await readdir(state, { recursive: true }))
        .filter((name) => /\.(secret|pem)$|pepper$/.test(name))
        .map((name) => readFile(join(state, name), 'utf8')),
    );
    const lines = kept
      .flatMap((text) => text.split('\n'))
      .filter((line) => line.length > 20 && !line.startsWith('-----'));
    expect(lines.length).toBeGreaterThan(3);
    for (const secret of [...lines, token, 'a-long-password']) expect(seen).not.toContain(secret);
  });
});

function signingKey(algorithm: string, extra = '', name = 'main'): string {
  return `apiVersion: grantry.dev/v1alpha1\nkind: SigningKey\nmetadata: {name: ${name}}\nspec:\n  algorithm: ${algorithm}\n${extra}`;
}

describe('signing keys of the folder', () => {
  it('sign from the moment they are there, while what was signed before stays valid', async () => {
    const folder = await folderOfTest(CLIENT);
    const { grantry, issuer } = await startDev(folder);
    const token = await tokenOf(folder, issuer);
    for (const algorithm of ['EdDSA', 'RS256']) {
      await writeFile(join(folder, 'key.yaml'), signingKey(algorithm));
      await grantry.printed(new RegExp(`SigningKey default/main \\(${algorithm}\\) is accepted`));
      expect(decodeProtectedHeader(await tokenOf(folder, issuer)).alg).toBe(algorithm);
      expect(await isActive(folder, issuer, token)).toBe(true);
    }
  });

  it('given a folder without RS256 → a key of it is served beside, and signs no access token', async () => {
    const folder = await folderOfTest({ ...CLIENT, 'key.yaml': signingKey('EdDSA') });
    const { grantry, issuer } = await startDev(folder);
    const algorithms = async () => (await keysOf(issuer)).map(({ alg }) => alg);
    expect(await algorithms()).toEqual(['EdDSA', 'RS256']);
    expect(decodeProtectedHeader(await tokenOf(folder, issuer)).alg).toBe('EdDSA');
    await writeFile(join(folder, 'own.yaml'), signingKey('RS256', '  rsaModulusBits: 2048\n', 'own'));
    await grantry.printed(/SigningKey default\/own \(RS256\) is accepted/);
    // What the former key has signed is verified on.
    expect(await algorithms()).toHaveLength(3);
  });

  it.each(['main', 'other'])(
    'leave the JWKS at once when the SigningKey %s revokes them, and another takes over',
    async (name) => {
      const folder = await folderOfTest({ ...CLIENT, 'main.yaml': signingKey('ES256') });
      const { issuer, grantry } = await startDev(folder);
      const token = await tokenOf(folder, issuer);
      const { kid } = decodeProtectedHeader(token);
      await writeFile(join(folder, `${name}.yaml`), signingKey('ES256', `  revokedKeyIds: ['${kid}']\n`, name));
      await grantry.printed(/"event":"key\.activated"[\s\S]*"event":"key\.activated"/);
      expect((await keysOf(issuer)).map((key) => key.kid)).not.toContain(kid);
      expect(decodeProtectedHeader(await tokenOf(folder, issuer)).kid).not.toBe(kid);
      expect(await isActive(folder, issuer, token)).toBe(false);
    },
  );
});

describe('the users of grantry dev', () => {
  it('is demo on loopback only', async () => {
    const folder = await folderOfTest(CLIENT);
    const { grantry } = await startDev(folder, ['--host', '0.0.0.0']);
    expect(grantry.output).toMatch(/Users +none/);
    expect(grantry.output).not.toContain('demo');
  });

  it('is not demo where the issuer is not on loopback: a tunnel or an ingress leads to it', async () => {
    const folder = await folderOfTest(CLIENT);
    const { grantry } = await startDev(folder, ['--issuer', 'https://id.example.com']);
    expect(grantry.output).toMatch(/Users +none/);
    expect(grantry.output).not.toContain('demo');
    for (const issuer of ['http://[::1]:9400', 'http://127.0.0.1:9400']) {
      const { grantry: local } = await startDev(folder, ['--issuer', issuer]);
      expect(local.output).toMatch(/Users +demo/);
    }
  });

  it('are those of --user, and not demo then', async () => {
    const folder = await folderOfTest(CLIENT);
    const { grantry } = await startDev(folder, ['--user', 'ann:one:two', '--user', 'bob:x']);
    expect(grantry.output).toMatch(/Users +ann, bob$/m);
  });

  it('are those of a Secret of type grantry.dev/users, hashed by grantry hash-password', async () => {
    const { output: hash } = await grantry(['hash-password'], { stdin: 'correct horse\n' });
    const users = JSON.stringify(JSON.stringify([{ username: 'carol', passwordHash: hash.trim() }]));
    const folder = await folderOfTest({
      ...CLIENT,
      'users.yaml': `kind: Secret\napiVersion: v1\nmetadata: {name: people}\ntype: grantry.dev/users\nstringData: {users.yaml: ${users}}`,
    });
    const started = await startDev(folder);
    expect(started.grantry.output).toMatch(/Users +carol$/m);
  });

  it('are none while such a Secret is faulty, and the banner says where to look', async () => {
    const folder = await folderOfTest({
      ...CLIENT,
      'users.yaml': `kind: Secret\napiVersion: v1\nmetadata: {name: people}\ntype: grantry.dev/users\nstringData: {users.yaml: "- {username: ann, password: hunter2}"}`,
    });
    const { grantry } = await startDev(folder);
    await grantry.printed(/InvalidUsers/);
    expect(grantry.output).toMatch(/Users +none: sign-in is not possible \(see the fault below\)$/m);
    expect(grantry.output).not.toContain('hunter2');
  });

  it('are not those of a bare list, which only grantry server reads: a fault says so', async () => {
    const folder = await folderOfTest({ ...CLIENT, 'users.yaml': '- username: ann\n' });
    const { grantry } = await startDev(folder);
    await grantry.printed(/users\.yaml:1 .*InvalidUsers/);
    expect(grantry.output).not.toContain('ann');
  });

  it('are those of such a Secret in any namespace, not only in that of grantry', async () => {
    const { output: hash } = await grantry(['hash-password'], { stdin: 'correct horse\n' });
    const users = JSON.stringify(JSON.stringify([{ username: 'carol', passwordHash: hash.trim() }]));
    const folder = await folderOfTest({
      ...CLIENT,
      'users.yaml': `kind: Secret\napiVersion: v1\nmetadata: {name: people, namespace: elsewhere}\ntype: grantry.dev/users\nstringData: {users.yaml: ${users}}`,
    });
    const started = await startDev(folder);
    expect(started.grantry.output).toMatch(/Users +carol$/m);
  });
});
