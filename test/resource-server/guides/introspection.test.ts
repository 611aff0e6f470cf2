// docs/guides/introspection.md: its manifests, and the library and Apache with its lines as APIs that ask a running grantry
// (docs/scope.md: 6750-3, 6750-4, 7662-2).

import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DpopHolder } from '../../dpop-holder.ts';
import { shell } from '../../processes/grantry-process.ts';
import { until } from '../../until.ts';
import { apacheWith, describeApache } from './apache.ts';
import { NotesIssuer } from './notes-issuer.ts';
import { filesOf, manifestsOf, NotesProgram, type Program } from './notes-program.ts';

const ROOT = join(import.meta.dirname, '../../..');
const page = readFileSync(join(ROOT, 'docs/guides/introspection.md'), 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'grantry-guide-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Clients beside those of the page: one with JWTs, one for another API, one that is the API itself, with a token of its own. */
const OTHERS = `---
apiVersion: grantry.dev/v1alpha1
kind: OAuthClient
metadata: { name: report, namespace: notes }
spec:
  grantTypes: [client_credentials]
  scopes: [notes/read]
  defaultScopes: [notes/read]
  audiences: ["urn:grantry:ns:notes:api"]
---
apiVersion: grantry.dev/v1alpha1
kind: OAuthClient
metadata: { name: neighbour, namespace: notes }
spec:
  grantTypes: [client_credentials]
  scopes: [notes/read]
  defaultScopes: [notes/read]
  audiences: ["urn:grantry:ns:notes:other"]
`;

/** The manifests of the page and the others; the API may get a token for another API, which it then sees itself. */
function manifests(): string {
  const own = 'grantTypes: [client_credentials]\n  scopes: [notes/read]\n  audiences: ["urn:grantry:ns:notes:other"]';
  const changed = manifestsOf(page).replace('grantTypes: []', own);
  expect(changed).not.toBe(manifestsOf(page));
  return changed + OTHERS;
}

it('its lines for curl → an active token with its scope', async () => {
  const issuer = await NotesIssuer.serve(manifestsOf(page));
  const [, lines = ''] = /## With curl\n\n```sh\n(.*?)```/s.exec(page) ?? [];
  const answer = JSON.parse(await shell(issuer.at(lines)));
  expect(answer).toMatchObject({
    active: true,
    scope: 'notes/read',
    aud: 'urn:grantry:ns:notes:api',
    sub: 'notes.reader',
  });
  await issuer.remove();
});

interface Asking {
  readonly program: () => Program;
  /** What it answers while it cannot ask. */
  readonly unavailable: number;
  /** Whether it waits no longer than a test may for a grantry that stands still. */
  readonly isBounded: boolean;
}

function describeAskingApi({ program, unavailable, isBounded }: Asking): void {
  let issuer: NotesIssuer;
  let api: NotesProgram;
  beforeAll(async () => {
    issuer = await NotesIssuer.serve(manifests());
    const environment = { CLIENT_SECRET: issuer.secretOf('notes.api') };
    api = await NotesProgram.start(Object.assign(program(), { environment }), issuer.issuer);
  });
  afterAll(async () => {
    await api?.end();
    await issuer?.remove();
  });

  it.each([
    ['opaque', 'notes.reader'],
    ['JWT', 'notes.report'],
  ])('an active token (%s) → 200; once it is revoked → 401', async (_, clientId) => {
    const token = await issuer.token({}, clientId);
    expect(await api.answer(`Bearer ${token}`)).toMatchObject({ status: 200, body: expect.stringContaining(clientId) });
    await issuer.revoke(token, clientId);
    const isRefused = async () => (await api.answer(`Bearer ${token}`)).status === 401;
    // A second at grantry, and one that Apache keeps answers.
    await until('the token is refused', isRefused, 5000);
    const { challenge } = await api.answer(`Bearer ${token}`);
    expect(challenge).toMatch(/^Bearer .*error="invalid_token"/);
  });

  it('one scope of two, in any order → 200; the wrong one → 403 with the scope', async () => {
    for (const scope of ['notes/read notes/write', 'notes/write notes/read']) {
      expect(await api.answer(`Bearer ${await issuer.token({ scope })}`)).toMatchObject({ status: 200 });
    }
    const { status, challenge } = await api.answer(`Bearer ${await issuer.token({ scope: 'notes/write' })}`);
    expect(status).toBe(403);
    expect(challenge).toMatch(/^Bearer .*error="insufficient_scope".*scope="notes\/read"/);
  });

  it('a token for another API, also one of its own → 401', async () => {
    for (const clientId of ['notes.neighbour', 'notes.api']) {
      const token = await issuer.token({ scope: 'notes/read' }, clientId);
      const { status, challenge } = await api.answer(`Bearer ${token}`);
      expect(status).toBe(401);
      expect(challenge).toMatch(/^Bearer .*error="invalid_token"/);
    }
  });

  it('a token that is bound to a key, as bearer token → 401', async () => {
    const dpop = new DpopHolder().proof(`${issuer.issuer}/token`, Date.now());
    const token = await issuer.token({}, 'notes.reader', { dpop });
    expect(await api.answer(`Bearer ${token}`)).toMatchObject({ status: 401 });
  });

  it('headers that name another person change nothing', async () => {
    const more = { 'oauth2-claim-sub': 'mallory', OAUTH2_CLAIM_sub: 'mallory', OAUTH2_CLAIM_scope: 'notes/read' };
    const { body } = await api.answer(`Bearer ${await issuer.token()}`, { more });
    expect(JSON.parse(body)).toEqual({ owner: 'notes.reader' });
    const token = await issuer.token({ scope: 'notes/write' });
    expect(await api.answer(`Bearer ${token}`, { more })).toMatchObject({ status: 403 });
  });

  it('no token, garbage, a token in the query → no access', async () => {
    expect(await api.answer(undefined)).toMatchObject({ status: 401 });
    expect(await api.answer('Bearer garbage')).toMatchObject({ status: 401 });
    const { status } = await api.answer(undefined, { query: `?access_token=${await issuer.token()}` });
    expect([400, 401]).toContain(status);
  });

  it('grantry stands still, or is unavailable → no access', async () => {
    const [still, gone] = [await issuer.token(), await issuer.token()];
    if (isBounded) {
      issuer.stop();
      expect(await api.answer(`Bearer ${still}`)).toMatchObject({ status: unavailable });
    }
    await issuer.end();
    expect(await api.answer(`Bearer ${gone}`)).toMatchObject({ status: unavailable });
  });
}

describe('the library', () => {
  const program = () => {
    const [file = '', code = ''] = [...filesOf(page, 'js')][0] ?? [];
    writeFileSync(join(folder, file), code);
    mkdirSync(join(folder, 'node_modules'), { recursive: true });
    symlinkSync(ROOT, join(folder, 'node_modules/grantry'));
    return { command: process.execPath, words: ['--conditions=source', file], cwd: folder };
  };
  describeAskingApi({ program, unavailable: 503, isBounded: true });
});

describeApache('Apache with mod_oauth2', () => {
  let backend: Server;
  beforeAll(async () => {
    backend = createServer((request, response) => {
      // Claims come under names with underscores.
      const [name] = Object.keys(request.headers).filter((header) => header.toLowerCase() === 'oauth2_claim_sub');
      response.end(JSON.stringify({ owner: request.headers[name ?? ''] }));
    });
    backend.listen(0, '127.0.0.1');
  });
  afterAll(() => {
    backend.closeAllConnections();
    backend.close();
  });

  const program = () => {
    const lines = filesOf(page, 'apache').get('notes.conf') ?? '';
    const { port } = backend.address() as AddressInfo;
    const here = lines.replace('127.0.0.1:8081', `127.0.0.1:${port}`);
    expect(here).not.toBe(lines);
    return apacheWith(here, mkdtempSync(join(folder, 'apache-')));
  };
  describeAskingApi({ program, unavailable: 401, isBounded: false });
});
