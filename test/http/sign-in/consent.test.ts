import { describe, expect, it } from 'vitest';
import type { Client } from '../../../src/oauth/registry/client.ts';
import { basic, PKCE } from '../../grantry.ts';
import { answerOf, hidden, type Page, type TestBrowser } from './sign-in-browser.ts';
import {
  aWorld,
  CALLBACK,
  LEAVING_POLICY,
  NATIVE,
  PASSWORD,
  SECRET,
  WEB,
  type World,
  type WorldOptions,
} from './sign-in-world.ts';

type Changes = Parameters<World['authorizePath']>[0];

/** Signs in on a login page; answers what /login answered. */
async function signIn(browser: TestBrowser, page: Page, username = 'alice'): Promise<Page> {
  const fields = { username, password: PASSWORD, csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
  const answer = await browser.post('/login', fields);
  expect(answer.status).toBe(303);
  return answer;
}

interface Asked {
  readonly world: World;
  readonly browser: TestBrowser;
  /** `/consent/…` */
  readonly path: string;
  readonly page: Page;
}

/** A signed-in person with the consent page open. */
async function asked(options: WorldOptions = {}, changes: Changes = {}): Promise<Asked> {
  const world = await aWorld(options);
  const browser = world.browser();
  const { location: path = '' } = await signIn(browser, await browser.get(world.authorizePath(changes)));
  const page = await browser.get(path);
  expect(page.status).toBe(200);
  return { world, browser, path, page };
}

/** Where the same person ends up the next time: at the consent page or at the client. */
async function nextTime({ world, browser }: Asked, changes: Changes = {}): Promise<string> {
  return (await browser.get(world.authorizePath(changes))).location ?? '';
}

/** The consent page the next time. */
async function askedAgain(opened: Asked, changes: Changes = {}): Promise<Asked> {
  const path = await nextTime(opened, changes);
  expect(path).toMatch(/^\/consent\//);
  return { ...opened, path, page: await opened.browser.get(path) };
}

function decide({ browser, path, page }: Omit<Asked, 'world'>, decision: string): Promise<Page> {
  return browser.post(path, { decision, csrf: hidden(page, 'csrf') });
}

/** Allows, and goes on to the client. */
async function allow(asked: Omit<Asked, 'world'>): Promise<Page> {
  const answer = await decide(asked, 'allow');
  expect(answer.status).toBe(303);
  return asked.browser.get(answer.location ?? '');
}

describe('the consent page', () => {
  it('says who asks, for what, where the answer goes, and who is signed in', async () => {
    const { page } = await asked({}, { scope: 'shop/read shop/write' });
    expect(page.body).toContain('<h1>Let <bdi>Shop</bdi> use your account?</h1>');
    expect(page.body).toContain('<code>shop/read</code>');
    expect(page.body).toContain('<code>shop/write</code>');
    expect(page.body).toContain('<strong>shop.example</strong>');
    expect(page.body).toContain('https://api.shop.example/');
    expect(page.body).toContain('<strong>Alice Ang (alice)</strong>');
    expect(page.body).not.toContain('<script');
  });

  it('says that access lasts until revoked if and only if there will be a refresh token', async () => {
    expect((await asked()).page.body).toContain('Until access is revoked');
    const short = await asked({ clients: [{ ...WEB, grantTypes: ['authorization_code'] }] });
    expect(short.page.body).not.toContain('Until access is revoked');
  });

  it.each([
    ['http://127.0.0.1:49152/callback', 'a program on this computer (127.0.0.1:49152)'],
    ['http://[::1]:49152/callback', 'a program on this computer ([::1]:49152)'],
    ['com.example.app:/callback', 'an app on this device (com.example.app)'],
  ])('says of %s what it is', async (redirectUri, words) => {
    const { page } = await asked({}, { client_id: NATIVE.clientId, redirect_uri: redirectUri });
    expect(page.body).toContain(`<strong>${words}</strong><span class="detail">`);
    expect(page.headers.get('content-security-policy')).toBe(LEAVING_POLICY);
  });

  it('shows what a client says about itself as text, loads no logo, and links only to https', async () => {
    const hostile: Client = {
      ...WEB,
      displayName: '</h1><script>alert(1)</script><img src=x onerror=alert(1)>"\'`&',
      clientUri: 'javascript:alert(1)',
      policyUri: 'https://shop.example/"onmouseover="alert(1)',
      tosUri: 'data:text/html,<script>alert(1)</script>',
      scopes: ['shop/read', "x<script>alert('1')</script>"],
    };
    const { page } = await asked({ clients: [hostile] }, { scope: "shop/read x<script>alert('1')</script>" });
    expect(page.body).not.toMatch(/<script|<img|javascript:|data:text| onmouseover=/);
    expect(page.body).toContain('&#60;script&#62;alert(1)');
    expect(page.body).toContain('href="https://shop.example/&#34;onmouseover=&#34;alert(1)"');
  });

  it('may be loaded again and again before the decision', async () => {
    const opened = await asked();
    const page = await opened.browser.get(opened.path);
    expect((await allow({ ...opened, page })).status).toBe(302);
  });

  it.each(['HEAD', 'PUT', 'DELETE'])('refuses %s with 405', async (method) => {
    const { browser, path } = await asked();
    const answer = await browser.send(method, path, {});
    expect(answer.status).toBe(405);
    expect(answer.headers.get('allow')).toBe('GET, POST');
  });
});

describe('Allow', () => {
  it('goes back by 303, then by 302 to the client with code, state and iss', async () => {
    const opened = await asked();
    const answer = await decide(opened, 'allow');
    expect(answer.status).toBe(303);
    expect(answer.location).toBe(opened.path.replace('/consent/', '/authorize/resume/'));
    const back = await opened.browser.get(answer.location ?? '');
    expect(back.status).toBe(302);
    expect(back.location?.startsWith(`${CALLBACK}?`)).toBe(true);
    const { code, ...rest } = answerOf(back);
    expect(code).toMatch(/^ac1\./);
    expect(rest).toEqual({ state: 'st&te= 1', iss: opened.world.issuer });
  });

  it('gives a code for what was shown: that person, scope and audience', async () => {
    const opened = await asked();
    const { code = '' } = answerOf(await allow(opened));
    const form = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: PKCE.verifier };
    const credentials = { authorization: basic(WEB.clientId, SECRET) };
    const response = await opened.world.post('/token', form, { headers: credentials });
    expect(response.status).toBe(200);
    const tokens = (await response.json()) as { access_token: string; scope: string };
    expect(tokens.scope).toBe('shop/read');
    const claims = JSON.parse(Buffer.from(tokens.access_token.split('.')[1] ?? '', 'base64url').toString()) as object;
    expect(claims).toMatchObject({
      sub: opened.world.subject('alice'),
      aud: 'https://api.shop.example/',
      client_id: WEB.clientId,
      auth_time: Math.floor(opened.world.now() / 1000),
    });
  });

  it('leaves one audit line, also when the button was pressed twice', async () => {
    const opened = await asked();
    const answers = [await decide(opened, 'allow'), await decide(opened, 'allow')];
    expect(answers.map(({ status }) => status)).toEqual([303, 303]);
    expect(answers[1]?.location).toBe(answers[0]?.location);
    expect(opened.world.events.filter(({ type }) => type?.startsWith('consent.'))).toEqual([
      {
        type: 'consent.given',
        subject: opened.world.subject('alice'),
        clientId: WEB.clientId,
        scope: 'shop/read',
        audience: 'https://api.shop.example/',
      },
    ]);
  });

  it('is remembered: the next time goes straight through', async () => {
    const opened = await asked();
    await allow(opened);
    expect((await opened.browser.get(opened.world.authorizePath())).location).toMatch(/[?&]code=ac1\./);
  });

  it('is remembered for this person and this client only', async () => {
    const twin: Client = { ...WEB, uid: '6a0c4d1e-3c5b-5f43-9d0a-0f6f1f6f0009', clientId: 'shop.twin' };
    const opened = await asked({ clients: [WEB, twin] });
    await allow(opened);
    expect(await nextTime(opened, { client_id: 'shop.twin' })).toMatch(/^\/consent\//);
    const other = opened.world.browser();
    const bob = await signIn(other, await other.get(opened.world.authorizePath()), 'bob');
    expect(bob.location).toMatch(/^\/consent\//);
  });

  it('for less is asked for the difference when the client wants more', async () => {
    const opened = await asked();
    await allow(opened);
    const { page } = await askedAgain(opened, { scope: 'shop/read shop/write' });
    const [wanted = '', had = ''] = page.body.split('You already allowed');
    expect(wanted).toContain('It asks for more than before');
    expect(wanted).toContain('<code>shop/write</code>');
    expect(wanted).not.toContain('<code>shop/read</code>');
    expect(had).toContain('<code>shop/read</code>');
  });

  it('for one resource is asked for again when the client wants another', async () => {
    const audiences = ['https://api.shop.example/', 'https://billing.shop.example/'];
    const client: Client = { ...WEB, audiences, defaultAudience: audiences[0] };
    const opened = await asked({ clients: [client] }, { resource: audiences[0] });
    await allow(opened);
    expect(await nextTime(opened, { resource: audiences[0] })).toMatch(/[?&]code=/);
    expect((await askedAgain(opened, { resource: audiences[1] })).page.body).toContain('https://billing.shop.example/');
  });

  it.each(['http://127.0.0.1:49152/callback', 'com.example.app:/callback'])(
    'is never remembered for a public client at %s',
    async (redirectUri) => {
      const changes = { client_id: NATIVE.clientId, redirect_uri: redirectUri };
      const opened = await asked({}, changes);
      expect((await allow(opened)).location).toMatch(/[?&]code=ac1\./);
      const next = await askedAgain(opened, changes);
      expect(next.page.body).toContain('<code>shop/read</code>');
      expect((await allow(next)).location).toMatch(/[?&]code=ac1\./);
    },
  );

  it('is asked of a public client at loopback even when its consent is Skip', async () => {
    const changes = { client_id: NATIVE.clientId, redirect_uri: 'http://127.0.0.1:5000/callback' };
    const opened = await asked({ clients: [{ ...NATIVE, consent: 'Skip' }] }, changes);
    expect((await allow(opened)).location).toMatch(/[?&]code=ac1\./);
  });

  it('that the store could not keep gives no code, and may be repeated', async () => {
    const opened = await asked();
    opened.world.breakStore('consents');
    expect((await decide(opened, 'allow')).status).toBe(503);
    opened.world.mendStores();
    expect((await allow(opened)).location).toMatch(/[?&]code=ac1\./);
  });
});

describe('Deny', () => {
  it('goes back to the client with access_denied, state and iss, and without a code', async () => {
    const opened = await asked();
    const answer = await decide(opened, 'deny');
    expect(answer.status).toBe(303);
    const back = await opened.browser.get(answer.location ?? '');
    expect(back.status).toBe(302);
    const said = answerOf(back);
    expect(said).toMatchObject({ error: 'access_denied', state: 'st&te= 1', iss: opened.world.issuer });
    expect(said).not.toHaveProperty('code');
    expect(opened.world.events.at(-1)).toMatchObject({ type: 'consent.denied', clientId: WEB.clientId });
  });

  it('is not remembered as consent', async () => {
    const opened = await asked();
    await opened.browser.get((await decide(opened, 'deny')).location ?? '');
    expect(await nextTime(opened)).toMatch(/^\/consent\//);
  });
});

describe('a decision', () => {
  it.each([
    ['odd', [['decision', 'yes']]],
    ['in capitals', [['decision', 'ALLOW']]],
    ['missing', []],
    ['empty', [['decision', '']]],
    [
      'doubled',
      [
        ['decision', 'allow'],
        ['decision', 'allow'],
      ],
    ],
    [
      'both',
      [
        ['decision', 'deny'],
        ['decision', 'allow'],
      ],
    ],
  ] as const)('that is %s gives no code and leaves the question open', async (_what, fields) => {
    const opened = await asked();
    const csrf: [string, string] = ['csrf', hidden(opened.page, 'csrf')];
    const answer = await opened.browser.post(opened.path, [...fields.map(([a, b]): [string, string] => [a, b]), csrf]);
    expect([answer.status, answer.location]).toEqual([400, undefined]);
    const resume = opened.path.replace('/consent/', '/authorize/resume/');
    expect((await opened.browser.get(resume)).status).toBe(400);
    expect((await allow(opened)).status).toBe(302);
  });

  it('stays as it was made first', async () => {
    const opened = await asked();
    await decide(opened, 'deny');
    const answer = await decide(opened, 'allow');
    expect([answer.status, answer.location]).toEqual([400, undefined]);
    expect(opened.world.lastReason()).toBe('interaction_decided_otherwise');
    const resume = opened.path.replace('/consent/', '/authorize/resume/');
    expect(answerOf(await opened.browser.get(resume)).error).toBe('access_denied');
  });

  it('cannot change the request by further fields', async () => {
    const opened = await asked();
    const answer = await opened.browser.post(opened.path, {
      decision: 'allow',
      csrf: hidden(opened.page, 'csrf'),
      scope: 'shop/read shop/write',
      redirect_uri: 'https://evil.example/',
      client_id: 'evil',
      resource: 'https://evil.example/',
    });
    const back = await opened.browser.get(answer.location ?? '');
    expect(back.location?.startsWith(`${CALLBACK}?`)).toBe(true);
    expect(await nextTime(opened, { scope: 'shop/read shop/write' })).toMatch(/^\/consent\//);
  });

  const refused: [string, Record<string, string>, Record<string, string>, string][] = [
    ['from another site', {}, { origin: 'https://evil.example' }, 'interaction_foreign_origin'],
    ['cross-site without origin', {}, { origin: 'null', 'sec-fetch-site': 'cross-site' }, 'interaction_foreign_origin'],
    ['from a sister host', {}, { origin: 'null', 'sec-fetch-site': 'same-site' }, 'interaction_foreign_origin'],
    ['without csrf value', { csrf: '' }, {}, 'interaction_bad_csrf'],
    ['with a made-up csrf value', { csrf: 'A'.repeat(43) }, {}, 'interaction_bad_csrf'],
  ];
  it.each(refused)('%s is refused', async (_what, fields, headers, reason) => {
    const opened = await asked();
    const form = { decision: 'allow', csrf: hidden(opened.page, 'csrf'), ...fields };
    const answer = await opened.browser.post(opened.path, form, headers);
    expect([answer.status, answer.location]).toEqual([400, undefined]);
    expect(opened.world.lastReason()).toBe(reason);
    const resume = opened.path.replace('/consent/', '/authorize/resume/');
    expect((await opened.browser.get(resume)).status).toBe(400);
  });

  it('with the csrf value of another interaction is refused', async () => {
    const opened = await asked();
    const other = await askedAgain(opened);
    expect((await decide({ ...opened, page: other.page }, 'allow')).status).toBe(400);
    expect(opened.world.lastReason()).toBe('interaction_bad_csrf');
  });

  it('comes too late after ten minutes', async () => {
    const opened = await asked();
    opened.world.advance(600_000);
    expect((await decide(opened, 'allow')).status).toBe(400);
    expect(opened.world.lastReason()).toBe('interaction_unknown');
  });
});

describe('an interaction', () => {
  /** Allowed, and taken by a try that got no answer. */
  async function unanswered(): Promise<{ opened: Asked; resume: string }> {
    const opened = await asked();
    const { location: resume = '' } = await decide(opened, 'allow');
    opened.world.loseAnswersOf('interactions');
    expect((await opened.browser.get(resume)).status).toBe(503);
    opened.world.mendStores();
    return { opened, resume };
  }

  /** Two that one browser opened and decided. */
  async function decidedTwice(opened: Asked): Promise<readonly [string, string]> {
    const second = await askedAgain(opened);
    const ways = [await decide(opened, 'allow'), await decide(second, 'allow')];
    return [ways[0]?.location ?? '', ways[1]?.location ?? ''];
  }

  it('belongs to the browser that opened it: no other sees, decides or finishes it', async () => {
    const opened = await asked();
    const resume = opened.path.replace('/consent/', '/authorize/resume/');
    const stranger = opened.world.browser();
    const other = opened.world.browser();
    await signIn(other, await other.get(opened.world.authorizePath()), 'bob');
    for (const browser of [stranger, other]) {
      const seen = await browser.get(opened.path);
      expect([seen.status, seen.location]).toEqual([400, undefined]);
      expect(seen.body).not.toContain('Shop');
      expect((await decide({ ...opened, browser }, 'allow')).status).toBe(400);
    }
    await decide(opened, 'allow');
    for (const browser of [stranger, other]) expect((await browser.get(resume)).status).toBe(400);
    expect((await opened.browser.get(resume)).status).toBe(302);
  });

  it('is not finished before its decision', async () => {
    const opened = await asked();
    const answer = await opened.browser.get(opened.path.replace('/consent/', '/authorize/resume/'));
    expect([answer.status, answer.location]).toEqual([400, undefined]);
  });

  it('is finished once: a repeat gets the 400 page and no second code', async () => {
    const opened = await asked();
    const { location: resume = '' } = await decide(opened, 'allow');
    const answers = await Promise.all([1, 2, 3, 4].map(() => opened.browser.get(resume)));
    expect(answers.map(({ status }) => status).sort()).toEqual([302, 400, 400, 400]);
    expect((await opened.browser.get(resume)).status).toBe(400);
    expect((await opened.browser.get(opened.path)).status).toBe(400);
  });

  it('that was taken without an answer is finished by the retry, and by none after that', async () => {
    const opened = await asked();
    const { world, browser } = opened;
    const { location: resume = '' } = await decide(opened, 'allow');
    world.loseAnswersOf('interactions');
    for (let tries = 0; tries < 3; tries++) expect((await browser.get(resume)).status).toBe(503);
    world.mendStores();
    const cookies = new Map(browser.cookies);
    const answers = await Promise.all([1, 2, 3, 4].map(() => browser.get(resume)));
    expect(answers.map(({ status }) => status).sort()).toEqual([302, 400, 400, 400]);
    expect(answers.filter(({ location }) => location?.startsWith(`${CALLBACK}?code=`))).toHaveLength(1);
    expect((await browser.get(resume)).status).toBe(400);
    for (const [name, value] of cookies) browser.cookies.set(name, value);
    expect((await browser.get(resume)).status).toBe(400);
  });

  it('that was taken without an answer is known to its browser by a cookie that scripts and other sites cannot use', async () => {
    const opened = await asked({ issuer: 'https://id.example' });
    const { location: resume = '' } = await decide(opened, 'allow');
    opened.world.loseAnswersOf('interactions');
    const [line = '', ...others] = (await opened.browser.get(resume)).headers.getSetCookie();
    expect(others).toEqual([]);
    const name = `__Host-grantry-tries-${resume.split('/').at(-1)?.slice(0, 8)}`;
    expect(line.split('=')[0]).toBe(name);
    expect(line.slice(name.length)).toMatch(/^=[\w-]{22}; /);
    expect(line.split('; ').slice(1).sort()).toEqual(['HttpOnly', 'Max-Age=600', 'Path=/', 'SameSite=Lax', 'Secure']);
  });

  it('that was taken without an answer is nothing to a browser without its cookie', async () => {
    const opened = await asked();
    const { world, browser } = opened;
    const { location: resume = '' } = await decide(opened, 'allow');
    const cookies = new Map(browser.cookies);
    world.loseAnswersOf('interactions');
    expect((await browser.get(resume)).status).toBe(503);
    world.mendStores();
    browser.cookies.clear();
    for (const [name, value] of cookies) browser.cookies.set(name, value);
    expect((await browser.get(resume)).status).toBe(400);
  });

  it('that was taken without an answer is finished however often its browser came again while the store was unavailable', async () => {
    const { opened, resume } = await unanswered();
    const { world, browser } = opened;
    world.breakStore('interactions');
    for (let reloads = 0; reloads < 30; reloads++) expect((await browser.get(resume)).status).toBe(503);
    world.mendStores();
    expect((await browser.get(resume)).status).toBe(302);
  });

  it('that got no answer time after time stays below a kilobyte of cookie, and is finished by the next try', async () => {
    const { opened, resume } = await unanswered();
    const { world, browser } = opened;
    world.loseAnswersOf('interactions');
    for (let reloads = 0; reloads < 50; reloads++) expect((await browser.get(resume)).status).toBe(503);
    const [cookie] = [...browser.cookies].filter(([name]) => name.includes('-tries'));
    expect(cookie?.join('=').length).toBeLessThan(1024);
    world.mendStores();
    expect((await browser.get(resume)).status).toBe(302);
  });

  it('that was taken without an answer is finished after another one of the same browser was', async () => {
    const opened = await asked();
    const { world, browser } = opened;
    const [resume, other] = await decidedTwice(opened);
    world.loseAnswersOf('interactions');
    expect((await browser.get(resume)).status).toBe(503);
    world.mendStores();
    expect((await browser.get(other)).status).toBe(302);
    expect((await browser.get(resume)).status).toBe(302);
  });

  it('that was taken without an answer is finished after the same browser came with one that is unknown', async () => {
    const { opened, resume } = await unanswered();
    expect((await opened.browser.get(`/authorize/resume/${'A'.repeat(43)}`)).status).toBe(400);
    expect((await opened.browser.get(resume)).status).toBe(302);
  });

  it('that was refused to a browser with tries of its own leaves it these tries', async () => {
    const { opened, resume } = await unanswered();
    const { browser } = opened;
    const tries = new Map(browser.cookies);
    const thief = opened.world.browser();
    await signIn(thief, await thief.get(opened.world.authorizePath()), 'bob');
    for (const [name, value] of tries) if (name.includes('-tries')) thief.cookies.set(name, value);
    const answer = await thief.get(resume);
    expect([answer.status, answer.headers.getSetCookie()]).toEqual([400, []]);
    expect((await browser.get(resume)).status).toBe(302);
  });

  it('and another of the same browser that lose their answers together are both finished', async () => {
    const opened = await asked();
    const { world, browser } = opened;
    const both = await decidedTwice(opened);
    world.loseAnswersOf('interactions');
    const lost = await Promise.all(both.map((resume) => browser.get(resume)));
    expect(lost.map(({ status }) => status)).toEqual([503, 503]);
    world.mendStores();
    const answers = await Promise.all(both.map((resume) => browser.get(resume)));
    expect(answers.map(({ status }) => status)).toEqual([302, 302]);
    expect([...browser.cookies.keys()].filter((name) => name.includes('-tries'))).toEqual([]);
  });

  it('that got no answer is kept for few at a time: no site fills a browser with cookies', async () => {
    const { opened, resume } = await unanswered();
    const { world, browser } = opened;
    world.loseAnswersOf('interactions');
    for (const letter of 'ABCDEFGHIJ') {
      expect((await browser.get(`/authorize/resume/${letter.repeat(43)}`)).status).toBe(503);
    }
    expect((await browser.get(resume)).status).toBe(503);
    expect([...browser.cookies.keys()].filter((name) => name.includes('-tries'))).toHaveLength(5);
    world.mendStores();
    expect((await browser.get(resume)).status).toBe(302);
  });

  it.each(['x', 'A'.repeat(42), 'A'.repeat(44), `A=1,${'A'.repeat(39)}`, `A.~${'A'.repeat(40)}`])(
    'is none under the id %s: no cookie is named by it',
    async (id) => {
      const { world, browser } = await asked();
      world.loseAnswersOf('interactions');
      const answer = await browser.get(`/authorize/resume/${id}`);
      expect([answer.status, answer.headers.getSetCookie()]).toEqual([400, []]);
    },
  );

  it('is found by its exact id only', async () => {
    const { browser } = await asked();
    for (const path of ['/consent/x', `/consent/${'A'.repeat(43)}`, `/authorize/resume/${'A'.repeat(43)}`]) {
      expect((await browser.get(path)).status).toBe(400);
    }
    for (const path of ['/consent', '/consent/', '/consent/a/b', '/authorize/resume', '/authorize/resume/']) {
      expect((await browser.get(path)).status).toBe(404);
    }
  });

  it.each(['HEAD', 'POST'])('is not finished by %s', async (method) => {
    const opened = await asked();
    const { location: resume = '' } = await decide(opened, 'allow');
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    const answer = await opened.browser.send(method, resume, form, method === 'POST' ? 'a=b' : undefined);
    expect(answer.status).toBe(405);
    expect(answer.headers.get('allow')).toBe('GET');
    expect((await opened.browser.get(resume)).status).toBe(302);
  });
});

describe('between the decision and the way back', () => {
  async function decided(): Promise<{ opened: Asked; resume: string }> {
    const opened = await asked();
    const { location: resume = '' } = await decide(opened, 'allow');
    return { opened, resume };
  }

  it('a client that disappears gets nothing', async () => {
    const { opened, resume } = await decided();
    opened.world.setClients([]);
    const answer = await opened.browser.get(resume);
    expect([answer.status, answer.location]).toEqual([400, undefined]);
    expect(opened.world.lastReason()).toBe('client_gone');
  });

  it('a client re-created under the same id gets nothing', async () => {
    const { opened, resume } = await decided();
    opened.world.setClients([{ ...WEB, uid: '6a0c4d1e-3c5b-5f43-9d0a-0f6f1f6fffff' }]);
    expect((await opened.browser.get(resume)).status).toBe(400);
  });

  it('a client that loses the redirect URI gets nothing there', async () => {
    const { opened, resume } = await decided();
    opened.world.setClients([{ ...WEB, redirectUris: ['https://shop.example/new'] }]);
    const answer = await opened.browser.get(resume);
    expect([answer.status, answer.location]).toEqual([400, undefined]);
  });

  it('a client that loses the scope gets invalid_scope', async () => {
    const { opened, resume } = await decided();
    opened.world.setClients([{ ...WEB, scopes: ['shop/write'], defaultScopes: [] }]);
    expect(answerOf(await opened.browser.get(resume)).error).toBe('invalid_scope');
  });

  it('what is refused because the client changed is counted by its reason, where that was met', async () => {
    const world = await aWorld();
    const browser = world.browser();
    const page = await browser.get(world.authorizePath());
    const narrower = [{ ...WEB, scopes: ['shop/write'], defaultScopes: [] }];
    world.setClients(narrower);
    const fields = {
      username: 'alice',
      password: PASSWORD,
      csrf: hidden(page, 'csrf'),
      request: hidden(page, 'request'),
    };
    expect(answerOf(await browser.post('/login', fields)).error).toBe('invalid_scope');
    world.setClients([WEB]);
    const { location: path = '' } = await signIn(browser, await browser.get(world.authorizePath()));
    const { location: resume = '' } = await decide({ browser, path, page: await browser.get(path) }, 'allow');
    world.setClients(narrower);
    expect(answerOf(await browser.get(path)).error).toBe('invalid_scope');
    world.setClients([]);
    expect((await browser.get(path)).status).toBe(400);
    expect((await browser.get(resume)).status).toBe(400);
    const counted = (await world.metrics()).match(/(?<=^grantry_token_errors_total)\{.*/gm) ?? [];
    expect(counted.sort()).toEqual([
      '{endpoint="consent",error="invalid_request",reason="client_gone"} 1',
      '{endpoint="consent",error="invalid_scope",reason="scope_not_registered"} 1',
      '{endpoint="login",error="invalid_scope",reason="scope_not_registered"} 1',
      '{endpoint="resume",error="invalid_request",reason="client_gone"} 1',
    ]);
  });

  it('a person who is disabled gives nothing', async () => {
    const { opened, resume } = await decided();
    opened.world.setDisabled(['alice']);
    expect((await opened.browser.get(resume)).status).toBe(400);
  });

  it('consent that is withdrawn counts', async () => {
    const { opened, resume } = await decided();
    await opened.world.stores.consents.withdraw(opened.world.subject('alice'), WEB.uid);
    expect((await opened.browser.get(resume)).status).toBe(400);
    expect(opened.world.lastReason()).toBe('interaction_consent_gone');
  });

  it('consent for one scope here and another there is none for the two crossed', async () => {
    const { opened, resume } = await decided();
    const { consents } = opened.world.stores;
    const subject = opened.world.subject('alice');
    await consents.withdraw(subject, WEB.uid);
    await consents.give(subject, WEB.uid, new Map([['https://other.example/', ['shop/read']]]), 60_000);
    await consents.give(subject, WEB.uid, new Map(WEB.audiences.map((audience) => [audience, ['shop/write']])), 60_000);
    expect((await opened.browser.get(resume)).status).toBe(400);
    expect(opened.world.lastReason()).toBe('interaction_consent_gone');
  });

  it('consent that is left for other audiences only is none for these', async () => {
    const { opened, resume } = await decided();
    const { consents } = opened.world.stores;
    await consents.withdraw(opened.world.subject('alice'), WEB.uid);
    const audiences = ['https://other.example/'];
    await consents.give(
      opened.world.subject('alice'),
      WEB.uid,
      new Map(audiences.map((audience) => [audience, ['shop/read']])),
      60_000,
    );
    expect((await opened.browser.get(resume)).status).toBe(400);
    expect(opened.world.lastReason()).toBe('interaction_consent_gone');
  });

  it.each([
    ['user', 'interaction_not_signed_in'],
    ['global', 'interaction_outdated'],
  ] as const)('a revocation counts: the %s watermark', async (kind, reason) => {
    const { opened, resume } = await decided();
    const subject = opened.world.subject('alice');
    await opened.world.stores.watermarks.raise({ kind, subject });
    expect((await opened.browser.get(resume)).status).toBe(400);
    expect(opened.world.lastReason()).toBe(reason);
  });
});

describe('"use another account"', () => {
  it('ends the session and goes back to the login with the same request', async () => {
    const changes = { scope: 'shop/read shop/write', state: 'a b&c=d%20"é' };
    const opened = await asked({}, changes);
    const former = opened.browser.cookies.get('grantry-session') ?? '';
    const answer = await decide(opened, 'other_account');
    expect(answer.status).toBe(303);
    expect(answer.location?.startsWith('/authorize?')).toBe(true);
    expect(opened.browser.cookies.has('grantry-session')).toBe(false);
    expect(opened.world.events.at(-1)).toEqual({
      type: 'session.ended',
      subject: opened.world.subject('alice'),
      reason: 'other_account',
    });

    const login = await opened.browser.get(answer.location ?? '');
    const { location: path = '' } = await signIn(opened.browser, login, 'bob');
    const page = await opened.browser.get(path);
    expect(page.body).toContain('<strong>bob</strong>');
    expect(page.body).toContain('<code>shop/write</code>');
    const back = answerOf(await allow({ browser: opened.browser, path, page }));
    expect(back).toMatchObject({ state: changes.state, iss: opened.world.issuer });

    const thief = opened.world.browser();
    thief.cookies.set('grantry-session', former);
    expect((await thief.get(opened.world.authorizePath())).body).toContain('name="password"');
  });

  it('goes back with the one resource that was asked for', async () => {
    const audiences = ['https://api.shop.example/', 'https://billing.shop.example/'];
    const client: Client = { ...WEB, audiences, defaultAudience: audiences[0] };
    const opened = await asked({ clients: [client] }, { resource: audiences[1] });
    const answer = await decide(opened, 'other_account');
    const { location: path = '' } = await signIn(
      opened.browser,
      await opened.browser.get(answer.location ?? ''),
      'bob',
    );
    const page = await opened.browser.get(path);
    expect(page.body).toContain('https://billing.shop.example/');
    expect(page.body).not.toContain('https://api.shop.example/');
  });

  it('needs the csrf value: another site cannot sign a person out', async () => {
    const opened = await asked();
    const form = { decision: 'other_account', csrf: 'A'.repeat(43) };
    expect((await opened.browser.post(opened.path, form)).status).toBe(400);
    expect((await opened.browser.get(opened.path)).status).toBe(200);
  });

  it('leaves the former interaction void', async () => {
    const opened = await asked();
    await decide(opened, 'other_account');
    await signIn(opened.browser, await opened.browser.get(opened.world.authorizePath()), 'alice');
    expect((await opened.browser.get(opened.path)).status).toBe(400);
  });
});

describe('logs of a sign-in', () => {
  it('hold no password, cookie, csrf value, sealed request, state, code or interaction', async () => {
    const opened = await asked({}, { state: 'canary-state' });
    const back = answerOf(await allow(opened));
    const log = JSON.stringify(opened.world.logs());
    const secrets = [
      ...opened.browser.cookies.values(),
      hidden(opened.page, 'csrf'),
      opened.path.split('/').at(-1) ?? '',
      back.code ?? '',
      'canary-state',
      PASSWORD,
    ];
    for (const secret of secrets) expect(log.includes(secret)).toBe(false);
    expect(log).toContain('"route":"consent"');
  });
});
