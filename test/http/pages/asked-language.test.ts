// The language that a client asks for by ui_locales: it stays through a sign-in, and comes before what the browser accepts.

import { expect, it } from 'vitest';
import type { Page } from '../sign-in/sign-in-browser.ts';
import { hidden } from '../sign-in/sign-in-browser.ts';
import { aWorld, NATIVE, PASSWORD, WEB } from '../sign-in/sign-in-world.ts';

const GERMAN = { 'accept-language': 'de' };
const ASKED = { ui_locales: 'zh-CN de' };

function languageOf({ body }: Page): string | undefined {
  return /<html lang="(.*?)">/.exec(body)?.[1];
}

it('given ui_locales → the login page, the same after a wrong password, and the consent page', async () => {
  const world = await aWorld();
  const browser = world.browser();
  const login = await browser.get(world.authorizePath(ASKED), GERMAN);
  const fields = { request: hidden(login, 'request'), csrf: hidden(login, 'csrf'), username: 'alice' };
  const wrong = await browser.post('/login', Object.assign({ password: 'wrong' }, fields), GERMAN);
  const signedIn = await browser.post('/login', Object.assign({ password: PASSWORD }, fields), GERMAN);
  const consent = await browser.get(signedIn.location ?? '', GERMAN);
  expect([login, wrong, consent].map(languageOf)).toEqual(['zh-Hans', 'zh-Hans', 'zh-Hans']);
  expect(languageOf(await browser.get('/account', GERMAN))).toBe('de');
});

it('given ui_locales at an error of a client without a policy → the page with the link', async () => {
  const world = await aWorld({ clients: [Object.assign({}, WEB, { admittedBy: 'baseline' as const })] });
  const page = await world.browser().get(world.authorizePath({ ui_locales: 'zh', scope: 'unknown' }), GERMAN);
  expect([page.status, languageOf(page)]).toEqual([400, 'zh-Hans']);
});

it('given ui_locales of a sign-out → the question, its form with them, and the end', async () => {
  const world = await aWorld({ clients: [WEB, NATIVE] });
  const browser = world.browser();
  const login = await browser.get(world.authorizePath());
  const fields = {
    request: hidden(login, 'request'),
    csrf: hidden(login, 'csrf'),
    username: 'alice',
    password: PASSWORD,
  };
  await browser.post('/login', fields);
  const question = await browser.get('/logout?ui_locales=zh-Hans', GERMAN);
  const form = { csrf: hidden(question, 'csrf'), ui_locales: hidden(question, 'ui_locales') };
  const end = await browser.post('/logout/confirm', form, GERMAN);
  expect([question, end].map(languageOf)).toEqual(['zh-Hans', 'zh-Hans']);
  expect(end.body).toContain('您已退出登录');
});
