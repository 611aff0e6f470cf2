// `npm run notes` against a real `grantry dev` and a real notes API: a person signs in once, and each mistake has its sentence.

import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../free-port.ts';
import { demoDecides, endAll, Issuer, notes, signInAddress } from './notes-servers.ts';

afterAll(endAll);

interface Setting {
  readonly name: string;
  readonly issuerNonce: string;
  readonly apiArgs: readonly string[];
}

const SETTINGS: readonly Setting[] = [
  { name: 'a nonce on demand', issuerNonce: 'on-demand', apiArgs: [] },
  { name: 'a nonce that issuer and API require', issuerNonce: 'required', apiArgs: ['--require-nonce'] },
];

describe.each(SETTINGS)('the notes command line with $name', ({ issuerNonce, apiArgs }) => {
  let issuer: Issuer;
  let api: string;
  let session: string;

  beforeAll(async () => {
    issuer = await Issuer.start({ GRANTRY_DPOP_NONCE: issuerNonce });
    api = await issuer.startApi(...apiArgs);
    session = join(issuer.folder, 'session.json');
  });

  function command(...args: readonly string[]) {
    return notes('--issuer', issuer.issuer, '--api', api, '--session', session, ...args);
  }

  /** Runs a command that needs no sign-in. */
  async function printed(...args: readonly string[]): Promise<string> {
    const run = await command(...args);
    expect([await run.ended(), run.errors]).toEqual([0, '']);
    return run.output;
  }

  /** Runs a command for which a person signs in. */
  async function printedAfterSignIn(...args: readonly string[]): Promise<string> {
    const run = await command(...args);
    const page = await demoDecides(await signInAddress(run), 'allow');
    expect([page.status, await run.ended()]).toEqual([200, 0]);
    return run.output;
  }

  async function kept(): Promise<Record<string, string>> {
    return JSON.parse(await readFile(session, 'utf8')) as Record<string, string>;
  }

  it('a person signs in once, adds notes, and lists them', async () => {
    expect(await printedAfterSignIn('add', 'Water', 'the', 'plants')).toMatch(
      /^ +1 {2}\d{4}-\d\d-\d\d {2}Water the plants\n$/,
    );
    expect(await printed('add', 'ring the \u001b[31mbell\u0007')).toMatch(/ring the {2}\[31mbell \n$/);
    expect((await printed('list')).trimEnd().split('\n')).toHaveLength(2);
  });

  it('the sign-in is kept for its owner alone, and is bound to a key', async () => {
    expect((await stat(session)).mode & 0o777).toBe(0o600);
    const { accessToken } = await kept();
    const answer = await fetch(`${api}/notes`, { headers: { authorization: `Bearer ${accessToken}` } });
    expect(answer.status).toBe(401);
  });

  it('an access token that is refused → renewed without the person', async () => {
    const before = await kept();
    await writeFile(session, JSON.stringify({ ...before, accessToken: 'expired' }));
    expect(await printed('list')).toContain('Water the plants');
    const after = await kept();
    expect(after.accessToken).not.toBe('expired');
    expect(after.refreshToken).not.toBe(before.refreshToken);
  });

  it('a sign-in that has ended → the person signs in again', async () => {
    await writeFile(
      session,
      JSON.stringify({ ...(await kept()), accessToken: 'expired', refreshToken: 'rt1.revoked' }),
    );
    expect(await printedAfterSignIn('list')).toContain('Water the plants');
  });

  it('a file that is no session → the person signs in again', async () => {
    const { refreshToken: _, ...rest } = await kept();
    for (const text of ['{"issuer":', JSON.stringify(rest)]) {
      await writeFile(session, text);
      expect(await printedAfterSignIn('list')).toContain('Water the plants');
    }
  });

  it('sign-out → nothing is kept, and what was kept is of no use', async () => {
    const before = await kept();
    expect(await printed('sign-out')).toBe('Signed out.\n');
    await expect(stat(session)).rejects.toMatchObject({ code: 'ENOENT' });
    expect(await printed('sign-out')).toBe('Not signed in.\n');
    await writeFile(session, JSON.stringify({ ...before, accessToken: 'expired' }));
    // Its refresh token is refused: a person is asked.
    await signInAddress(await command('list'));
  });
});

describe('README › Call an API', () => {
  it('its three lines serve the API, add a note after a sign-in, and list it', async () => {
    const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8');
    const [, block = ''] = /\*\*Call an API\.\*\*.*?```sh\n(.*?)```/s.exec(readme) ?? [];
    const [serve, ...commands] = block.trimEnd().split('\n');
    expect([serve, commands.length]).toEqual(['npm run notes-api', 2]);
    const issuer = await Issuer.start();
    const places = ['--issuer', issuer.issuer, '--api', await issuer.startApi()];
    const [add, list] = commands.map((line) => line.replace(/^npm run notes -- /, '').split(' '));
    const kept = ['--session', join(issuer.folder, 'session.json')];
    const adding = await notes(...places, ...kept, ...(add ?? []));
    await demoDecides(await signInAddress(adding), 'allow');
    expect(await adding.ended()).toBe(0);
    const listing = await notes(...places, ...kept, ...(list ?? []));
    expect([await listing.ended(), listing.output]).toEqual([0, adding.output]);
  });
});

describe('a mistake with the notes command line', () => {
  let issuer: Issuer;
  let api: string;
  let signedIn: string;

  beforeAll(async () => {
    issuer = await Issuer.start();
    api = await issuer.startApi();
    signedIn = join(issuer.folder, 'signed-in.json');
    const command = await notes('list', '--issuer', issuer.issuer, '--api', api, '--session', signedIn);
    await demoDecides(await signInAddress(command), 'allow');
    expect(await command.ended()).toBe(0);
  });

  /** What a command says that fails: one line, without a stack. */
  async function complaint(args: readonly string[], code = 1): Promise<string> {
    const command = await notes(...args);
    expect([await command.ended(), command.output]).toEqual([code, '']);
    expect(command.errors).not.toContain('    at ');
    expect(command.errors).toMatch(/^notes: /m);
    return command.errors;
  }

  it('words that make no command → 2 and the usage', async () => {
    const wrong = [[], ['remove'], ['add'], ['list', 'all'], ['list', '--nope'], ['list', '--issuer', 'localhost']];
    await Promise.all(wrong.map(async (args) => expect(await complaint(args, 2)).toContain('usage: npm run notes')));
  });

  it('no grantry there → npm start', async () => {
    const nowhere = `http://localhost:${await freePort()}`;
    expect(await complaint(['list', '--issuer', nowhere])).toContain('(npm start)');
  });

  it('another server in its place → --issuer', async () => {
    expect(await complaint(['list', '--issuer', api])).toContain('--issuer');
  });

  it('the issuer by another name → the name it has', async () => {
    const byNumber = issuer.issuer.replace('localhost', '127.0.0.1');
    expect(await complaint(['list', '--issuer', byNumber])).toContain(`${issuer.issuer}: `);
  });

  it('an issuer elsewhere without TLS → refused', async () => {
    expect(await complaint(['list', '--issuer', 'http://issuer.invalid'])).toContain('neither https');
  });

  function signedInWith(place: string, ...args: readonly string[]): readonly string[] {
    return ['--issuer', issuer.issuer, '--session', signedIn, '--api', place, ...args];
  }

  it('a file for the sign-in that is none → --session, before a person is asked', async () => {
    const { folder } = issuer;
    for (const path of [folder, join(folder, 'no-folder', 'session.json')]) {
      const said = await complaint(['list', '--issuer', issuer.issuer, '--session', path]);
      expect(said).toContain('--session');
      expect(said).not.toContain('/authorize');
    }
  });

  it('no API there → npm run notes-api', async () => {
    const nowhere = `http://localhost:${await freePort()}`;
    expect(await complaint(signedInWith(nowhere, 'list'))).toContain('(npm run notes-api)');
  });

  it('another server in its place → --api', async () => {
    expect(await complaint(signedInWith(issuer.issuer, 'list'))).toContain('--api');
  });

  it('the API by another name than its proofs have to name → says so', async () => {
    expect(await complaint(signedInWith(api.replace('localhost', '127.0.0.1'), 'list'))).toContain('another address');
  });

  it('a text that is too long, a body that is too large → the answer of the API', async () => {
    expect(await complaint(signedInWith(api, 'add', 'x'.repeat(2001)))).toContain(' 400: ');
    expect(await complaint(signedInWith(api, 'add', 'x'.repeat(20_000)))).toContain(' 413: ');
  });

  it('an API for another issuer → the option that mends it', async () => {
    const place = await issuer.startApi('--issuer', 'http://localhost:1');
    expect(await complaint(signedInWith(place, 'list'))).toContain(`--issuer ${issuer.issuer}`);
  });

  it('an API that its issuer refuses → says so', async () => {
    const api = await issuer.startApi('--introspect', '--secret-file', issuer.secretFileOf('report-job'));
    expect(await complaint(signedInWith(api, 'list'))).toContain('cannot check tokens');
  });

  it('consent that is denied → says so, and nothing is kept', async () => {
    const session = join(issuer.folder, 'denied.json');
    const command = await notes('list', '--issuer', issuer.issuer, '--api', api, '--session', session);
    const page = await demoDecides(await signInAddress(command), 'deny');
    expect([page.status, await command.ended(), command.output]).toEqual([200, 1, '']);
    expect(command.errors).toContain('not allowed');
    await expect(stat(session)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('a stranger at the port of the redirect → 400, 404, and the sign-in goes on', async () => {
    const session = join(issuer.folder, 'stranger.json');
    const command = await notes('list', '--issuer', issuer.issuer, '--api', api, '--session', session);
    const address = await signInAddress(command);
    const redirect = address.searchParams.get('redirect_uri') ?? '';
    expect((await fetch(`${redirect}?code=ac1.forged&state=other`)).status).toBe(400);
    expect((await fetch(new URL('/favicon.ico', redirect))).status).toBe(404);
    await demoDecides(address, 'allow');
    expect(await command.ended()).toBe(0);
  });
});
