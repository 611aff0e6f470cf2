// Client authentication as all three endpoints share it (RFC 6749 §2.3; docs/scope.md: 6749-2, 6749-3, C1–C6, C16).

import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { basic, type Grantry, readJson, startGrantry } from '../../grantry.ts';

const SECRET = 'kSiQ0yY8Jh1x4nV7wB2dR5tG9mC3fL6p';
const ODD_SECRET = 'p%41ss+w:rd &=ü%zz0123456789abcdefgh';
const ENDPOINTS = ['/token', '/revoke', '/introspect'] as const;
/** The parameter without which each endpoint refuses an authenticated request. */
const REQUIRED = { '/token': 'grant_type', '/revoke': 'token', '/introspect': 'token' } as const;
const FORM = { grant_type: 'client_credentials', token: 'whatever' };

let grantry: Grantry;
beforeAll(async () => {
  grantry = await startGrantry({
    clients: [
      { clientId: 'team.basic', secret: SECRET },
      { clientId: 'team.post', secret: SECRET, authMethod: 'client_secret_post' },
      { clientId: 'team.public' },
      { clientId: 'team.odd', secret: ODD_SECRET },
      { clientId: 'team.rotating', secret: SECRET },
    ],
  });
});

function raw(userPass: string): string {
  return `Basic ${Buffer.from(userPass).toString('base64')}`;
}

/** The members of the last log line of a request that are about its client. */
function lastLine() {
  const { clientId, reason } = grantry.logs().findLast(({ route }) => route !== undefined) ?? {};
  return { clientId, reason };
}

/** How many requests have authenticated by `client_secret_basic`. */
async function authenticated(): Promise<number> {
  const metrics = await (await fetch(grantry.adminUrl('/metrics'))).text();
  const series = /^grantry_client_authentication_total\{method="client_secret_basic",outcome="succeeded"\} (\d+)$/m;
  return Number(series.exec(metrics)?.[1] ?? 0);
}

async function ask(path: string, form: Record<string, string>, authorization?: string) {
  const response = await grantry.post(path, form, { headers: authorization === undefined ? {} : { authorization } });
  const text = await response.text();
  return { status: response.status, challenge: response.headers.get('www-authenticate'), text };
}

describe.each(ENDPOINTS)('at %s', (path) => {
  it('the right secret by the registered method is accepted', async () => {
    expect((await ask(path, FORM, basic('team.basic', SECRET))).status).toBe(200);
    expect((await ask(path, { ...FORM, client_id: 'team.post', client_secret: SECRET })).status).toBe(200);
  });

  it('every failure has the same 401, body and challenge', async () => {
    const answers = [
      await ask(path, FORM),
      await ask(path, FORM, basic('team.basic', 'wrong')),
      await ask(path, FORM, basic('team.nobody', SECRET)),
      await ask(path, FORM, basic('team.post', SECRET)),
      await ask(path, FORM, basic('team.public', SECRET)),
      await ask(path, FORM, basic('team.public', '')),
      await ask(path, { ...FORM, client_id: 'team.basic', client_secret: SECRET }),
      await ask(path, { ...FORM, client_id: 'team.post', client_secret: 'wrong' }),
      await ask(path, { ...FORM, client_id: 'team.nobody', client_secret: 'wrong' }),
      await ask(path, { ...FORM, client_id: 'team.public', client_secret: SECRET }),
      await ask(path, { ...FORM, client_id: 'team.basic' }),
      await ask(path, { ...FORM, client_id: 'team.nobody' }),
      await ask(path, { ...FORM, client_secret: SECRET }),
      await ask(path, FORM, 'Basic'),
      await ask(path, FORM, 'Basic !!!'),
      await ask(path, FORM, raw('no-colon')),
      await ask(path, FORM, raw('\xff\xfe:x')),
      await ask(path, FORM, 'Bearer abc'),
      await ask(path, FORM, 'Digest username="a"'),
      await ask(path, FORM, 'nonsense'),
    ];
    const challenge = `Basic realm="${grantry.issuer}", error="invalid_client"`;
    for (const answer of answers) expect(answer).toEqual({ ...answers[0], status: 401, challenge });
    expect(JSON.parse(answers[0]?.text ?? '').error).toBe('invalid_client');
  });

  it('a request refused after its client has authenticated → the log line names the client, and it is counted as authenticated', async () => {
    const before = await authenticated();
    const { status, text } = await ask(path, {}, basic('team.basic', SECRET));
    expect([status, JSON.parse(text).error]).toEqual([400, 'invalid_request']);
    expect(lastLine()).toEqual({ clientId: 'team.basic', reason: `${REQUIRED[path]}_missing` });
    expect((await authenticated()) - before).toBe(1);
  });

  it('two methods at once are invalid_request', async () => {
    const both = [
      await ask(path, { ...FORM, client_id: 'team.basic', client_secret: SECRET }, basic('team.basic', SECRET)),
      await ask(path, { ...FORM, client_secret: SECRET }, basic('team.basic', SECRET)),
      await ask(path, { ...FORM, client_assertion: 'x', client_assertion_type: 'y' }, basic('team.basic', SECRET)),
      await ask(path, { ...FORM, client_id: 'team.post', client_secret: SECRET, client_assertion: 'x' }),
      await ask(path, { ...FORM, client_id: 'team.post', client_secret: SECRET }, 'Bearer x'),
      await ask(path, { ...FORM, client_id: 'team.public', client_assertion: 'x' }, 'Bearer x'),
    ];
    for (const { status, text } of both) expect([status, JSON.parse(text).error]).toEqual([400, 'invalid_request']);
  });

  it('Basic beside the same client_id is fine, beside another one invalid_request', async () => {
    expect((await ask(path, { ...FORM, client_id: 'team.basic' }, basic('team.basic', SECRET))).status).toBe(200);
    const other = await ask(path, { ...FORM, client_id: 'team.post' }, basic('team.basic', SECRET));
    expect([other.status, JSON.parse(other.text).error]).toEqual([400, 'invalid_request']);
  });

  it('the scheme Basic has no case', async () => {
    const credentials = basic('team.basic', SECRET);
    for (const scheme of ['basic', 'BASIC', 'bAsIc']) {
      expect((await ask(path, FORM, credentials.replace('Basic', scheme))).status).toBe(200);
    }
  });

  it('a deleted client can do nothing any more', async () => {
    const gone = await startGrantry({ clients: [{ clientId: 'team.basic', secret: SECRET }] });
    gone.setClients([]);
    const response = await gone.post(path, FORM, { headers: { authorization: basic('team.basic', SECRET) } });
    expect([response.status, (await readJson(response)).error]).toEqual([401, 'invalid_client']);
  });
});

describe('a public client', () => {
  it('is known by its client_id alone, also beside an empty client_secret', async () => {
    for (const extra of [{}, { client_secret: '' }]) {
      const answer = await ask('/revoke', { token: 'x', client_id: 'team.public', ...extra });
      expect(answer.status).toBe(200);
    }
  });

  it('may not introspect', async () => {
    const { status, text } = await ask('/introspect', { token: 'x', client_id: 'team.public' });
    expect([status, JSON.parse(text).error]).toEqual([401, 'invalid_client']);
    expect(lastLine()).toEqual({ clientId: 'team.public', reason: 'public_client' });
  });
});

describe('a secret', () => {
  it('is accepted form-encoded (RFC 6749 §2.3.1) and as it is', async () => {
    expect((await ask('/token', FORM, basic('team.odd', ODD_SECRET))).status).toBe(200);
    expect((await ask('/token', FORM, raw(`team.odd:${ODD_SECRET}`))).status).toBe(200);
  });

  it('is accepted with every character percent-encoded', async () => {
    const all = (text: string) =>
      [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
    expect((await ask('/token', FORM, raw(`${all('team.odd')}:${all(ODD_SECRET)}`))).status).toBe(200);
  });

  it('is refused when it is another one, whatever it looks like', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'grapheme', maxLength: 60 }), async (guess) => {
        fc.pre(guess !== ODD_SECRET);
        const encoded = await ask('/token', FORM, basic('team.odd', guess.toWellFormed()));
        const asIs = await ask('/token', FORM, raw(`team.odd:${guess}`));
        expect([encoded.status, asIs.status]).toEqual([401, 401]);
      }),
      { numRuns: 100 },
    );
  });

  it('survives the way of any client id and secret through Basic', async () => {
    const text = fc.string({ unit: fc.constantFrom(...'aZ09.-_~:%+ &=üß€𝄞"\\'), minLength: 1, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(text, text, async (clientId, secret) => {
        grantry.setClients([{ clientId, secret }]);
        expect((await ask('/token', FORM, basic(clientId, secret))).status).toBe(200);
      }),
      { numRuns: 60 },
    );
  });

  it('answers 401 to any bytes at all behind Basic', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 80 }), async (bytes) => {
        const answer = await ask('/token', FORM, `Basic ${Buffer.from(bytes).toString('base64')}`);
        expect(answer.status).toBe(401);
      }),
      { numRuns: 100 },
    );
  });
});
