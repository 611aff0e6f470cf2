// How `grantry dev` rotates: what annotations request, what an interval makes due, and a secret whose file is deleted.

import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { decodeProtectedHeader } from 'jose';
import { afterEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { folderOfTest } from '../../manifests/a-folder.ts';
import { until } from '../../until.ts';
import { endProcesses, post, startDev } from '../grantry-process.ts';

afterEach(endProcesses);

const PATIENT = '{gracePeriod: 1h}';

/** A client whose metadata has this annotation. */
function job({ at, now, rotation = PATIENT, keys = '' }: Partial<Record<'at' | 'now' | 'rotation' | 'keys', string>>) {
  const annotations = [
    ...(at === undefined ? [] : [`grantry.dev/rotate-requested-at: '${at}'`]),
    ...(now === undefined ? [] : [`grantry.dev/rotate-now: '${now}'`]),
  ];
  return `apiVersion: grantry.dev/v1alpha1
kind: OAuthClient
metadata: {name: job, annotations: {${annotations.join(', ')}}}
spec:
  grantTypes: [client_credentials]
  scopes: [default/read]
  defaultScopes: [default/read]
  auth: {clientSecret: {rotation: ${rotation}${keys}}}
`;
}

function signingKey({ at, revoked = [], name = 'main' }: { at?: string; revoked?: readonly string[]; name?: string }) {
  const annotations = at === undefined ? '' : `, annotations: {grantry.dev/rotate-requested-at: '${at}'}`;
  return `apiVersion: grantry.dev/v1alpha1\nkind: SigningKey\nmetadata: {name: ${name}${annotations}}\nspec: {algorithm: ES256, revokedKeyIds: [${revoked.join(', ')}]}\n`;
}

const fileIn = (folder: string) => join(folder, '.grantry/secrets/default.job.secret');
const secretIn = async (folder: string) => (await readFile(fileIn(folder), 'utf8')).trimEnd();

/** The status of a token request with this secret. */
async function tried(issuer: string, secret: string): Promise<number> {
  return (await post(`${issuer}/token`, { grant_type: 'client_credentials' }, `default.job:${secret}`)).status;
}

async function tokenIn(folder: string, issuer: string): Promise<string> {
  const credentials = `default.job:${await secretIn(folder)}`;
  const { body } = await post(`${issuer}/token`, { grant_type: 'client_credentials' }, credentials);
  return String(body.access_token);
}

async function kidsOf(issuer: string): Promise<readonly string[]> {
  const response = await fetch(`${issuer}/.well-known/jwks.json`);
  return ((await response.json()) as { keys: readonly { kid: string }[] }).keys.map(({ kid }) => kid);
}

const kidOf = (token: string) => decodeProtectedHeader(token).kid ?? '';

describe('a client secret of grantry dev', () => {
  it('given a new rotate-requested-at → a new secret, the former accepted also after a restart, one line', async () => {
    const folder = await folderOfTest({ 'job.yaml': job({}) });
    const one = await startDev(folder);
    const first = await secretIn(folder);
    await writeFile(join(folder, 'job.yaml'), job({ at: '1' }));
    await one.grantry.printed(
      / default\.job has a new secret in \S+default\.job\.secret; the former one is accepted until 2/,
    );
    const second = await secretIn(folder);
    expect([second === first, await tried(one.issuer, first), await tried(one.issuer, second)]).toEqual([
      false,
      200,
      200,
    ]);
    expect(one.grantry.output).not.toContain('was changed');
    await one.grantry.end();
    expect(one.grantry.output.match(/has a new secret/g)).toHaveLength(1);
    // One version of each record: what is replaced is removed.
    expect(await readdir(join(folder, '.grantry/records'))).toHaveLength(2);
    const again = await startDev(folder);
    expect(await secretIn(folder)).toBe(second);
    expect([await tried(again.issuer, first), await tried(again.issuer, second)]).toEqual([200, 200]);
    // The request that is handled stays handled when it is removed and when it is the same again.
    for (const request of [{}, { at: '1' }]) {
      await writeFile(join(folder, 'job.yaml'), job({ ...request, rotation: '{gracePeriod: 2h}' }));
      await writeFile(join(folder, 'mark.yaml'), signingKey({ name: `mark-${Object.keys(request).length}` }));
      await again.grantry.printed(new RegExp(`mark-${Object.keys(request).length} .* is accepted`));
      expect(await secretIn(folder)).toBe(second);
    }
  });

  it('given a request from while grantry did not run → a new secret at the start, and a line', async () => {
    const folder = await folderOfTest({ 'job.yaml': job({}) });
    const one = await startDev(folder);
    const first = await secretIn(folder);
    await one.grantry.end();
    await writeFile(join(folder, 'job.yaml'), job({ at: '1' }));
    const { grantry, issuer } = await startDev(folder);
    await grantry.printed(/default\.job has a new secret in .*; the former one is accepted until/);
    const second = await secretIn(folder);
    expect(second).not.toBe(first);
    expect([await tried(issuer, first), await tried(issuer, second)]).toEqual([200, 200]);
  });

  it('given requests that are older than the first secret, or than the record of it → no rotation', async () => {
    const folder = await folderOfTest({ 'job.yaml': job({ at: '1', now: '1' }) });
    const one = await startDev(folder);
    const first = await secretIn(folder);
    await one.grantry.end();
    // The state of a version that kept no records.
    await rm(join(folder, '.grantry/records'), { recursive: true });
    await writeFile(join(folder, 'job.yaml'), job({ at: '2', now: '2' }));
    const { grantry, issuer } = await startDev(folder);
    expect([await secretIn(folder), await tried(issuer, first)]).toEqual([first, 200]);
    expect(one.grantry.output + grantry.output).not.toContain('new secret');
  });

  it('given the end of its grace → the former one is refused, and a line says so', async () => {
    const folder = await folderOfTest({ 'job.yaml': job({ rotation: '{gracePeriod: 2s}' }) });
    const { grantry, issuer } = await startDev(folder);
    const first = await secretIn(folder);
    await writeFile(join(folder, 'job.yaml'), job({ at: '1', rotation: '{gracePeriod: 2s}' }));
    await until('it is refused', async () => (await tried(issuer, first)) === 401);
    await grantry.printed(/ default\.job: a former secret is refused from now on/);
    expect(await tried(issuer, await secretIn(folder))).toBe(200);
  });

  it('given a grace that ends after a restart → the former one is refused then', async () => {
    const rotation = '{gracePeriod: 8s}';
    const folder = await folderOfTest({ 'job.yaml': job({ rotation }) });
    const one = await startDev(folder);
    const first = await secretIn(folder);
    await writeFile(join(folder, 'job.yaml'), job({ at: '1', rotation }));
    await one.grantry.printed(/the former one is accepted/);
    await one.grantry.end();
    const { issuer } = await startDev(folder);
    await until('it is refused', async () => (await tried(issuer, first)) === 401);
    expect(await tried(issuer, await secretIn(folder))).toBe(200);
  });

  it('given a new rotate-now → a new secret, those before it refused at once', async () => {
    const folder = await folderOfTest({ 'job.yaml': job({}) });
    const { grantry, issuer } = await startDev(folder);
    const first = await secretIn(folder);
    await writeFile(join(folder, 'job.yaml'), job({ at: '1' }));
    await grantry.printed(/the former one is accepted/);
    const second = await secretIn(folder);
    await writeFile(join(folder, 'job.yaml'), job({ at: '1', now: '1' }));
    await grantry.printed(/ default\.job has a new secret in \S+default\.job\.secret; those before it are refused/);
    const third = await secretIn(folder);
    expect(await Promise.all([first, second, third].map((secret) => tried(issuer, secret)))).toEqual([401, 401, 200]);
  });

  it('given a file that is deleted → a new one at once, those before it refused, also after a restart', async () => {
    const folder = await folderOfTest({ 'job.yaml': job({}) });
    const one = await startDev(folder);
    const first = await secretIn(folder);
    await writeFile(join(folder, 'job.yaml'), job({ at: '1' }));
    await one.grantry.printed(/the former one is accepted/);
    const second = await secretIn(folder);
    await rm(fileIn(folder));
    await one.grantry.printed(/ default\.job has a new secret in \S+default\.job\.secret; those before it are refused/);
    const third = await secretIn(folder);
    const statuses = (issuer: string) => Promise.all([first, second, third].map((secret) => tried(issuer, secret)));
    expect(await statuses(one.issuer)).toEqual([401, 401, 200]);
    await one.grantry.end();
    expect(await statuses((await startDev(folder)).issuer)).toEqual([401, 401, 200]);
  });

  it('given a folder of state that is deleted whole → a new secret and new keys', async () => {
    const folder = await folderOfTest({ 'job.yaml': job({}) });
    const { grantry, issuer } = await startDev(folder);
    const first = await secretIn(folder);
    // In one step: what is deleted file by file is made again meanwhile.
    await rename(join(folder, '.grantry'), `${folder}-deleted`);
    await rm(`${folder}-deleted`, { recursive: true });
    await grantry.printed(/ default\.job has a new secret/);
    expect([await tried(issuer, first), await tried(issuer, await secretIn(folder))]).toEqual([401, 200]);
  });

  it('given an interval → rotated again and again, the former one in its Secret while it is accepted', async () => {
    const rotation = { rotation: '{interval: 24h, gracePeriod: 30m}', keys: ', keys: {previousClientSecret: former}' };
    const folder = await folderOfTest({ 'job.yaml': job(rotation) });
    const one = await startDev(folder);
    const first = await secretIn(folder);
    await one.grantry.end();
    // As if the secret were a day old.
    const records = join(folder, '.grantry/records');
    const [record = ''] = (await readdir(records)).filter((name) => name.startsWith('secrets.'));
    const text = await readFile(join(records, record), 'utf8');
    const past = new Date(Date.now() - 86_401_000).toISOString();
    await writeFile(join(records, record), text.replace(/("grantry\.dev\/rotated-at":")[^"]+/, `$1${past}`));
    const { issuer, grantry } = await startDev(folder);
    await grantry.printed(/default\.job has a new secret/);
    const second = await secretIn(folder);
    const secretObject = async () => parse(await readFile(join(folder, '.grantry/secrets/default.job.yaml'), 'utf8'));
    expect((await secretObject()).stringData).toMatchObject({ 'client-secret': second, former: first });
    expect([await tried(issuer, first), await tried(issuer, second)]).toEqual([200, 200]);
    await writeFile(join(folder, 'job.yaml'), job({ ...rotation, now: '1' }));
    await grantry.printed(/those before it are refused/);
    await until('its Secret follows', async () => (await secretObject()).stringData['client-secret'] !== second);
    expect((await secretObject()).stringData.former).toBeUndefined();
  });

  it('given two processes on one folder → both accept the same new secret, and refuse what is deleted', async () => {
    const folder = await folderOfTest({ 'job.yaml': job({}) });
    const both = await Promise.all([startDev(folder), startDev(folder)]);
    const statuses = (secret: string) => Promise.all(both.map(({ issuer }) => tried(issuer, secret)));
    let former = await secretIn(folder);
    for (const at of ['1', '2', '3']) {
      await writeFile(join(folder, 'job.yaml'), job({ at }));
      await until('it is rotated', async () => (await secretIn(folder)) !== former);
      const secret = await secretIn(folder);
      await until('both accept it', async () => String(await statuses(secret)) === '200,200');
      expect(await statuses(former)).toEqual([200, 200]);
      former = secret;
    }
    await writeFile(join(folder, 'job.yaml'), job({ at: '3', now: '1' }));
    await until('both refuse the former one', async () => String(await statuses(former)) === '401,401');
    const last = await secretIn(folder);
    await until('both accept the last one', async () => String(await statuses(last)) === '200,200');
    await rm(fileIn(folder));
    await until('both refuse the one that was deleted', async () => String(await statuses(last)) === '401,401');
    const made = await secretIn(folder);
    await until('both accept the one that was made', async () => String(await statuses(made)) === '200,200');
  });

  it('given a record that is damaged → the start names it; a running server keeps what it has', async () => {
    const folder = await folderOfTest({ 'job.yaml': job({}) });
    const { grantry, issuer } = await startDev(folder);
    const secret = await secretIn(folder);
    await writeFile(join(folder, '.grantry/records/secrets.99.json'), 'garbage\n');
    await grantry.printed(/secrets\.99\.json: \S+: It is not JSON/);
    expect(await tried(issuer, secret)).toBe(200);
    await grantry.end();
    const next = startDev(folder);
    await expect(next).rejects.toThrow(/secrets\.99\.json is not JSON; remove it/);
  });
});

describe('a signing key of grantry dev', () => {
  it('given a new rotate-requested-at → a new key signs, the former verifies also after a restart, one line', async () => {
    const folder = await folderOfTest({ 'job.yaml': job({}), 'key.yaml': signingKey({}) });
    const one = await startDev(folder);
    const token = await tokenIn(folder, one.issuer);
    await writeFile(join(folder, 'key.yaml'), signingKey({ at: '1' }));
    const [, kid] = await one.grantry.printed(
      / SigningKey default\/main: the key \S+ verifies until \S+; the key (\S+) signs from now on/,
    );
    expect(kidOf(await tokenIn(folder, one.issuer))).toBe(kid);
    expect(await kidsOf(one.issuer)).toEqual(expect.arrayContaining([kid, kidOf(token)]));
    await one.grantry.end();
    expect(one.grantry.output.match(/SigningKey default\/main:/g)).toHaveLength(1);
    const again = await startDev(folder);
    expect(kidOf(await tokenIn(folder, again.issuer))).toBe(kid);
    expect(await kidsOf(again.issuer)).toContain(kidOf(token));
    expect(again.grantry.output).not.toContain('SigningKey default/main');
  });

  it('given revokedKeyIds → one line names the key that is revoked and the one that signs', async () => {
    const folder = await folderOfTest({ 'job.yaml': job({}), 'key.yaml': signingKey({}) });
    const { grantry, issuer } = await startDev(folder);
    const revoked = kidOf(await tokenIn(folder, issuer));
    await writeFile(join(folder, 'key.yaml'), signingKey({ revoked: [revoked] }));
    const [line, kid] = await grantry.printed(/ SigningKey default\/main: .*the key (\S+) signs from now on/);
    expect(line).toContain(`the key ${revoked} is revoked`);
    expect(kidOf(await tokenIn(folder, issuer))).toBe(kid);
    expect(await kidsOf(issuer)).not.toContain(revoked);
  });

  it('given requests that are older than the keys, or than the record of them → no rotation', async () => {
    const folder = await folderOfTest({ 'job.yaml': job({}), 'key.yaml': signingKey({ at: '1' }) });
    const one = await startDev(folder);
    const kids = await kidsOf(one.issuer);
    await one.grantry.end();
    await rm(join(folder, '.grantry/records'), { recursive: true });
    await writeFile(join(folder, 'key.yaml'), signingKey({ at: '2' }));
    const again = await startDev(folder);
    expect(await kidsOf(again.issuer)).toEqual(kids);
  });
});
