// What every API of the guides does, in whichever language: one suite for the programs that are cut out of a page.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SigningAlgorithm } from '../../../src/oauth/values/signature.ts';
import { freePort } from '../../free-port.ts';
import { shell } from '../../processes/grantry-process.ts';
import { until } from '../../until.ts';
import { BAD_TOKENS, NotesIssuer } from './notes-issuer.ts';
import { manifestsOf, NotesProgram, type Program } from './notes-program.ts';

const ALGORITHMS: readonly SigningAlgorithm[] = ['ES256', 'EdDSA', 'RS256'];

/** A program of a page as it stands there, and with keys that are old after a tenth of a second. */
export interface Programs {
  readonly program: Program;
  readonly impatient: Program;
  /** Whether a key that replaces another one counts from its first token. */
  readonly findsKeysAtOnce: boolean;
}

/** @param page of the guide @param programs by name */
export function describeNotesApi(page: string, programs: Readonly<Record<string, Programs>>): void {
  const manifests = manifestsOf(page);
  describe.each(ALGORITHMS)('with tokens of %s', (algorithm) => {
    const world = worldOf(manifests, programs, algorithm);

    describe.each(Object.keys(programs))('%s', (name) => {
      it('a token with the scope → 200', async () => {
        const token = await world.issuer.token();
        const answer = await world.api(name).answer(`Bearer ${token}`);
        expect(answer).toMatchObject({ status: 200, body: expect.stringContaining('"notes.reader"') });
        expect(await world.api(name).answer(`bearer ${token}`)).toMatchObject({ status: 200 });
      });

      it('a token without the scope → 403 with the scope', async () => {
        const read = await world.issuer.token();
        const { status, challenge } = await world.api(name).answer(`Bearer ${read}`, { method: 'POST' });
        expect(status).toBe(403);
        expect(challenge).toMatch(/^Bearer .*error="insufficient_scope".*scope="notes\/write"/);
        const both = await world.issuer.token({ scope: 'notes/read notes/write' });
        expect(await world.api(name).answer(`Bearer ${both}`, { method: 'POST' })).toMatchObject({ status: 200 });
      });

      it.each(Object.entries(BAD_TOKENS))('a token %s → 401 invalid_token', async (_, made) => {
        const { status, challenge } = await world.api(name).answer(`Bearer ${await made(world.issuer)}`);
        expect(status).toBe(401);
        expect(challenge).toMatch(/^Bearer .*error="invalid_token"/);
      });
    });

    it('an issuer that becomes unavailable → the keys at hand serve on', async () => {
      const token = await world.issuer.token();
      const statusOf = async (name: string) => (await world.api(name).answer(`Bearer ${token}`)).status;
      const names = Object.keys(programs);
      for (const name of names) expect(await statusOf(name)).toBe(200);
      await world.issuer.end();
      for (const name of names) expect(await statusOf(name)).toBe(200);
    });
  });

  describe('whatever the key', () => {
    const world = worldOf(manifests, programs);
    const names = Object.keys(programs);

    it.each(names)('%s: the lines of the page → 200, 403, 401', async (name) => {
      const [, lines = ''] = /## Try it\n\n```sh\n.*?&\n(.*?)```/s.exec(page) ?? [];
      const printed = await shell(world.issuer.at(lines).replaceAll('http://127.0.0.1:8080', world.api(name).address));
      expect([...printed.matchAll(/HTTP\/\S* (\d+)/g)].map(([, status]) => status)).toEqual(['200', '403', '401']);
    });

    it.each(names)('%s: no token, or another scheme → 401 with a challenge without an error', async (name) => {
      for (const authorization of [undefined, 'Basic YTpi', `DPoP ${await world.issuer.token()}`]) {
        const { status, challenge } = await world.api(name).answer(authorization);
        expect(status).toBe(401);
        expect(challenge).toMatch(/^Bearer (?!.*error)/);
      }
    });

    it.each(names)('%s: a malformed token, or one in the query → 400', async (name) => {
      const api = world.api(name);
      const token = await world.issuer.token();
      const query = { query: `?access_token=${token}` };
      for (const asked of [api.answer('Bearer'), api.answer(`Bearer ${token} b`), api.answer(undefined, query)]) {
        const { status, challenge } = await asked;
        expect(status).toBe(400);
        expect(challenge).toMatch(/^Bearer .*error="invalid_request"/);
      }
    });

    it.each(names)('%s: two Authorization headers → 400, whichever is good', async (name) => {
      const api = world.api(name);
      const good = `Bearer ${await world.issuer.token()}`;
      for (const values of [
        [good, 'Bearer bad'],
        ['Bearer bad', good],
        [good, good],
      ]) {
        const { status, challenge } = await api.answerTo(values.flatMap((value) => ['Authorization', value]));
        expect(status).toBe(400);
        expect(challenge).toMatch(/^Bearer .*error="invalid_request"/);
      }
    });

    it.each(names)('%s: a revoked key → 401 when the keys are fetched again', async (name) => {
      const api = await NotesProgram.start(programs[name]?.impatient, world.issuer.issuer);
      const token = await world.issuer.token();
      expect(await api.answer(`Bearer ${token}`)).toMatchObject({ status: 200 });
      await world.issuer.revokeKey();
      await until('the token is refused', async () => (await api.answer(`Bearer ${token}`)).status === 401);
      if (programs[name]?.findsKeysAtOnce) {
        expect(await world.api(name).answer(`Bearer ${await world.issuer.token()}`)).toMatchObject({ status: 200 });
      }
      await api.end();
    });

    it.each(names)('%s: an issuer that was never there → 503', async (name) => {
      const lonely = await NotesProgram.start(programs[name]?.program, `http://127.0.0.1:${await freePort()}`);
      expect(await lonely.answer(`Bearer ${await world.issuer.token()}`)).toMatchObject({ status: 503 });
      await lonely.end();
    });
  });
}

/** An issuer and an API of each program for the tests of a suite. */
function worldOf(manifests: string, programs: Readonly<Record<string, Programs>>, algorithm?: SigningAlgorithm) {
  const world = {
    issuer: undefined as unknown as NotesIssuer,
    apis: new Map<string, NotesProgram>(),
    api(name: string): NotesProgram {
      const api = world.apis.get(name);
      if (api === undefined) throw new Error(`no API ${name}`);
      return api;
    },
  };
  beforeAll(async () => {
    world.issuer = await NotesIssuer.serve(manifests, algorithm);
    const start = async ([name, { program }]: [string, Programs]) =>
      world.apis.set(name, await NotesProgram.start(program, world.issuer.issuer));
    await Promise.all(Object.entries(programs).map(start));
  }, 120_000);
  afterAll(async () => {
    for (const api of world.apis.values()) await api.end();
    await world.issuer?.remove();
  });
  return world;
}
