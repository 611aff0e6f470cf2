// The titles of error pages and of problems at the login page: each says what happened, in every language.

import { describe, expect, it } from 'vitest';
import { OWN_BRAND } from '../../../src/http/pages/brand.ts';
import { type ErrorPageFacts, errorPage } from '../../../src/http/pages/error-page.ts';
import { type LoginProblem, loginPage } from '../../../src/http/pages/login-page.ts';
import { pageFrame } from '../../../src/http/pages/page-frame.ts';
import { aWorld } from '../sign-in/sign-in-world.ts';

const SITE = { basePath: '/tenant', brand: OWN_BRAND };
const NAMES = { provider: 'Corp & Sons', username: 'ada' };

const PROBLEMS: readonly LoginProblem[] = [
  { kind: 'missing', username: true, password: true },
  { kind: 'wrong' },
  { kind: 'tooMany', seconds: 60 },
  { kind: 'busy', seconds: undefined },
  { kind: 'outdated', seconds: 5 },
  { kind: 'cancelled', provider: NAMES.provider },
  { kind: 'unavailable', provider: NAMES.provider },
  { kind: 'invalid', provider: NAMES.provider },
  { kind: 'notPermitted', ...NAMES },
  { kind: 'notForPerson', ...NAMES },
  { kind: 'notForPerson', username: NAMES.username, provider: undefined },
  { kind: 'notOpen' },
];

/** One of each kind of error that people are shown. */
const ERRORS: readonly Pick<ErrorPageFacts, 'status' | 'reason' | 'answer'>[] = [
  { status: 400, reason: 'scope_exceeded', answer: 'https://app.example/cb?error=invalid_scope' },
  { status: 400, reason: 'client_unknown' },
  { status: 400, reason: 'client_id_missing' },
  { status: 400, reason: 'redirect_uri_mismatch' },
  { status: 400, reason: 'interaction_expired' },
  { status: 400, reason: 'account_bad_csrf' },
  { status: 429, reason: 'person_rate_limited' },
  { status: 503, reason: 'store_unavailable' },
  { status: 404, reason: 'not_found' },
  { status: 405, reason: 'method_not_allowed' },
  { status: 500, reason: 'unexpected' },
];

const text = (markup = '') =>
  markup
    .replace(/<[^>]+>/g, '')
    .replace(/\s+/g, ' ')
    .trim();

describe.each(['en', 'de', 'zh'])('in %s', (language) => {
  const frame = pageFrame(SITE, { 'accept-language': language });

  function problemOf(problem: LoginProblem): { readonly title: string; readonly advice: string } {
    const facts = { host: 'id.example', clientName: 'Shop', sealedRequest: 's', csrf: 'c', username: '', problem };
    const rest = { takesPasswords: true, providers: [], isClosedForNow: false, order: 'providers-first' as const };
    const page = loginPage({ frame, ...facts, ...rest });
    const [, title, advice] = /<h2 id="problem-title">([\s\S]*?)<\/h2>([\s\S]*?)<\/div>/.exec(page) ?? [];
    return { title: text(title), advice: text(advice) };
  }

  function errorOf(error: Pick<ErrorPageFacts, 'status' | 'reason' | 'answer'>) {
    const page = errorPage({ frame, requestId: 'r', ...error });
    const [, title] = /<title>(.*?) · grantry<\/title>/.exec(page) ?? [];
    const [, heading, message, advice] = /<h1>(.*?)<\/h1>\s*<p>(.*?)<\/p>\s*<p>(.*?)<\/p>/.exec(page) ?? [];
    return { title, heading, message, advice };
  }

  it('each problem of a sign-in → a title of its own, with the names that it is about, and an advice', () => {
    const shown = PROBLEMS.map(problemOf);
    expect(new Set(shown.map(({ title }) => title)).size).toBe(PROBLEMS.length);
    for (const [at, { title, advice }] of shown.entries()) {
      const problem = PROBLEMS[at];
      if (problem !== undefined && 'provider' in problem && problem.provider !== undefined) {
        expect(title).toContain('Corp &#38; Sons');
      }
      if (problem?.kind === 'notForPerson' || problem?.kind === 'notPermitted') expect(title).toContain('ada');
      expect(title).not.toMatch(/[.。]$/);
      expect(advice).toMatch(/[.。]$/);
      expect(advice).not.toContain(title);
    }
  });

  it('each kind of error → a title of its own, a message and an advice', () => {
    const shown = ERRORS.map(errorOf);
    expect(new Set(shown.map(({ title }) => title)).size).toBe(ERRORS.length);
    for (const { title, heading, message, advice } of shown) {
      expect(heading).toBe(title);
      expect(title).not.toMatch(/[.。]$/);
      expect(message).toMatch(/[.。]$/);
      expect(advice).toMatch(/[.。:：]$/);
    }
  });

  it('the error of the account page → a link to it, and no other error has one', () => {
    const links = ERRORS.filter(({ answer }) => answer === undefined).map(({ reason, status }) => [
      reason,
      [...errorPage({ frame, requestId: 'r', reason, status }).matchAll(/<a href="([^"]*)"/g)].map(([, link]) => link),
    ]);
    const expected = ERRORS.slice(1).map(({ reason }) => [
      reason,
      reason === 'account_bad_csrf' ? ['/tenant/account'] : [],
    ]);
    expect(links).toEqual(expected);
  });
});

it.each([
  ['an unknown client', { client_id: 'none' }, 'client_unknown', 'This application cannot be used here'],
  ['no client', { client_id: '' }, 'client_id_missing', 'The request of the application is not valid'],
  [
    'another address',
    { redirect_uri: 'https://evil.example/' },
    'redirect_uri_mismatch',
    'The address to return to is not registered',
  ],
] as const)('a request with %s → the page says so', async (_what, changes, reason, title) => {
  const world = await aWorld();
  const page = await world.browser().get(world.authorizePath(changes));
  expect([page.status, world.logs().at(-1)?.reason]).toEqual([400, reason]);
  expect(page.body).toContain(`<h1>${title}</h1>`);
});

it.each(['client_unknown', 'client_refused', 'client_gone'])('%s → one page', (reason) => {
  const frame = pageFrame(SITE, {});
  expect(errorPage({ frame, status: 400, reason, requestId: 'r' })).toBe(
    errorPage({ frame, status: 400, reason: 'client_unknown', requestId: 'r' }),
  );
});

it.each([
  'client_id_duplicate',
  'redirect_uri_missing',
  'redirect_uri_duplicate',
  'id_token_hint_invalid',
  'client_id_mismatch',
  'post_logout_redirect_uri_without_client',
  'request_too_long_for_upstream',
])('%s → the page about the request of the application', (reason) => {
  const frame = pageFrame(SITE, {});
  expect(errorPage({ frame, status: 400, reason, requestId: 'r' })).toBe(
    errorPage({ frame, status: 400, reason: 'client_id_missing', requestId: 'r' }),
  );
});
