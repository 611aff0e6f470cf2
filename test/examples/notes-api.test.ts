// examples/notes-api/ over HTTP, with tokens of a real `grantry dev`: the table of its answers, by keys and by introspection.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Notes } from '../../examples/notes-api/notes.ts';
import { takenPort } from '../processes/grantry-process.ts';
import { until } from '../until.ts';
import { AUDIENCE, endAll, Issuer, notesApi } from './notes-servers.ts';

let issuer: Issuer;
beforeAll(async () => {
  issuer = await Issuer.start();
});
afterAll(endAll);

type Fields = Readonly<Record<string, string>>;

/** The challenge of an answer, by its members. */
function challengeOf({ headers }: Response): Fields {
  return Object.fromEntries(
    [...(headers.get('www-authenticate') ?? '').matchAll(/([\w-]+)="([^"]*)"/g)].map(([, name, value]) => [
      name,
      value,
    ]),
  );
}

describe.each([
  ['by its keys', []],
  ['by introspection', ['--introspect']],
] as const)('the notes API that checks tokens %s', (_, args) => {
  let api: string;
  let reader: string;
  let writer: string;

  beforeAll(async () => {
    [api, reader, writer] = await Promise.all([
      issuer.startApi(...args),
      issuer.token('reader'),
      issuer.token('writer'),
    ]);
  });

  function list(headers: Fields, path = '/notes'): Promise<Response> {
    return fetch(`${api}${path}`, { headers });
  }

  function add(token: string, body: string, type = 'application/json'): Promise<Response> {
    const headers = { authorization: `Bearer ${token}`, 'content-type': type };
    return fetch(`${api}/notes`, { method: 'POST', headers, body });
  }

  async function notesOf(token: string): Promise<readonly unknown[]> {
    const answer = await list({ authorization: `Bearer ${token}` });
    expect(answer.status).toBe(200);
    return ((await answer.json()) as { readonly notes: readonly unknown[] }).notes;
  }

  it('no token → 401 with the scope it takes, and no error', async () => {
    const answer = await list({});
    const { realm, scope, error } = challengeOf(answer);
    expect([answer.status, realm, scope, error]).toEqual([401, AUDIENCE, 'default/notes.read', undefined]);
  });

  it('garbage, a token of another API, a token that was changed → 401 invalid_token', async () => {
    for (const token of ['garbage', await issuer.token('stranger'), `${reader.slice(0, -8)}AAAAAAAA`]) {
      const answer = await list({ authorization: `Bearer ${token}` });
      expect([answer.status, challengeOf(answer).error]).toEqual([401, 'invalid_token']);
    }
  });

  it('a token in the query → 400 invalid_request', async () => {
    const answer = await list({}, `/notes?access_token=${reader}`);
    expect([answer.status, challengeOf(answer).error]).toEqual([400, 'invalid_request']);
  });

  it('a bearer token as if it were bound → 401 invalid_token', async () => {
    const answer = await list({ authorization: `DPoP ${reader}`, dpop: 'x.y.z' });
    expect([answer.status, challengeOf(answer).error]).toEqual([401, 'invalid_token']);
  });

  it('a note with the scope for reading alone → 403 insufficient_scope', async () => {
    const answer = await add(reader, JSON.stringify({ text: 'x' }));
    const { error, scope } = challengeOf(answer);
    expect([answer.status, error, scope]).toEqual([403, 'insufficient_scope', 'default/notes.write']);
  });

  it('a note with the scope for writing → 201, and its owner alone has it', async () => {
    const answer = await add(writer, JSON.stringify({ text: 'Buy milk' }));
    expect([answer.status, await answer.json()]).toEqual([201, expect.objectContaining({ id: 1, text: 'Buy milk' })]);
    expect(await notesOf(writer)).toMatchObject([{ id: 1, text: 'Buy milk' }]);
    expect(await notesOf(reader)).toEqual([]);
  });

  it.each([
    ['no JSON', '{', 'application/json', 400],
    ['no object', '[]', 'application/json', 400],
    ['no text', '{}', 'application/json', 400],
    ['an empty text', '{"text":""}', 'application/json', 400],
    ['a number as text', '{"text":5}', 'application/json', 400],
    ['a member that it does not know', '{"text":"x","owner":"demo"}', 'application/json', 400],
    ['a long text', JSON.stringify({ text: 'x'.repeat(2001) }), 'application/json', 400],
    ['a body that is too large', JSON.stringify({ text: 'x'.repeat(20_000) }), 'application/json', 413],
    ['another type', '<text/>', 'text/xml', 415],
  ])('a note that is %s → its status, and nothing is added', async (_what, body, type, status) => {
    const before = await notesOf(writer);
    expect((await add(writer, body, type)).status).toBe(status);
    expect(await notesOf(writer)).toEqual(before);
  });

  it('another path, another method → 404', async () => {
    const headers = { authorization: `Bearer ${writer}` };
    expect((await list(headers, '/')).status).toBe(404);
    expect((await fetch(`${api}/notes`, { method: 'DELETE', headers })).status).toBe(404);
  });
});

describe('the notes API', () => {
  it('by introspection: a revoked token → 401 within a second or so; an issuer that is unavailable → 503', async () => {
    const away = await Issuer.start();
    const api = await away.startApi('--introspect');
    const token = await away.token('reader');
    const statusNow = async () =>
      (await fetch(`${api}/notes`, { headers: { authorization: `Bearer ${token}` } })).status;
    expect(await statusNow()).toBe(200);
    expect((await away.post('/revoke', 'reader', { token })).status).toBe(200);
    await until('the revocation counts', async () => (await statusNow()) === 401, 5000);
    await away.process.end();
    const answer = await fetch(`${api}/notes`, { headers: { authorization: `Bearer ${token}` } });
    expect([answer.status, answer.headers.has('retry-after')]).toEqual([503, true]);
  });

  it('whose port is taken, or whose options are wrong → 1 and what to do', async () => {
    using taken = await takenPort();
    const missing = `${issuer.folder}/nowhere`;
    const wrong = [
      [['--port', `${taken.port}`], '--port 9411'],
      [['--port', 'x'], 'usage: npm run notes-api'],
      [['--issuer', 'nowhere'], 'usage: npm run notes-api'],
      [['--nope'], 'usage: npm run notes-api'],
      [['--introspect', '--secret-file', missing], 'npm start'],
    ] as const;
    await Promise.all(
      wrong.map(async ([args, remedy]) => {
        const api = await notesApi(...args);
        expect([await api.ended(), api.output]).toEqual([1, '']);
        expect(api.errors).toContain(remedy);
        expect(api.errors).not.toContain('    at ');
      }),
    );
  });

  it('ends with 0 on SIGTERM', async () => {
    const api = await notesApi('--port', '0');
    await api.printed(/^notes API/);
    expect(await api.end()).toBe(0);
  });
});

describe('the notes of a person', () => {
  it('that are 1 000 → no further one, and all are kept', () => {
    const notes = new Notes();
    for (let number = 1; number <= 1000; number++) expect(notes.add('ann', `${number}`)?.id).toBe(number);
    expect(notes.add('ann', 'too many')).toBeUndefined();
    expect([notes.of('ann').length, notes.of('ann').at(-1)?.text]).toEqual([1000, '1000']);
    expect(notes.add('ben', 'first')?.id).toBe(1);
  });
});
