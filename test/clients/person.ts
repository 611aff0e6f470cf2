// The person in front of a client library: opens the address it built, signs in, decides, and comes back with the address
// the server sent them to. A browser without script: forms are sent as they stand in the page, with its own hidden fields.

import type { Grantry } from '../grantry.ts';
import { type Page, TestBrowser } from '../http/sign-in/sign-in-browser.ts';

export interface Answers {
  readonly username: string;
  readonly password: string;
  readonly decision: 'allow' | 'deny';
}

/** What a browser says of a form on a page that was served with `Referrer-Policy: no-referrer`. */
const FORM_HEADERS = { origin: 'null', 'sec-fetch-site': 'same-origin' };
const MOST_STEPS = 10;

/** Follows an authorization request to its end. @returns the client's own address with the answer in its query */
export async function decideOn(grantry: Grantry, authorizationUrl: URL, answers: Answers): Promise<URL> {
  const { origin } = new URL(grantry.issuer);
  return await answerIn(new TestBrowser(origin, grantry.issuer), authorizationUrl, answers);
}

/** The same in a browser that may know the person already. @param authorizationUrl below the issuer that the browser is for */
export async function answerIn(browser: TestBrowser, authorizationUrl: URL, answers: Answers): Promise<URL> {
  const { origin } = authorizationUrl;
  let page = await browser.get(pathOf(authorizationUrl));
  for (let step = 0; step < MOST_STEPS; step++) {
    if (page.location !== undefined) {
      const target = new URL(page.location, origin);
      if (target.origin !== origin) return target;
      page = await browser.get(pathOf(target));
      continue;
    }
    const form = fillIn(page, answers);
    if (form === undefined) throw new Error(`no form to fill in on a page with status ${page.status}`);
    page = await browser.post(form.action, form.fields, FORM_HEADERS);
  }
  throw new Error(`the person went round in circles; the last page had status ${page.status}`);
}

function pathOf(url: URL): string {
  return `${url.pathname}${url.search}`;
}

/** The one form of the page that the answers are for, or that of a sign-out; undefined on a page without one. */
export function fillIn(page: Page, { username, password, decision }: Answers) {
  const forms = page.body.match(/<form\b[\s\S]*?<\/form>/g) ?? [];
  const login = forms.find((form) => form.includes('name="password"'));
  const consent = forms.find((form) => form.includes(`value="${decision}"`));
  const logout = forms.find((form) => form.includes('/logout/confirm"'));
  const form = login ?? consent ?? logout;
  if (form === undefined) return undefined;
  const hidden = (form.match(/<input\b[^>]*type="hidden"[^>]*>/g) ?? []).map((input) => [
    attributeOf(input, 'name'),
    attributeOf(input, 'value'),
  ]);
  const answered = form === login ? { username, password } : form === consent ? { decision } : {};
  return { action: attributeOf(form, 'action'), fields: { ...Object.fromEntries(hidden), ...answered } };
}

function attributeOf(element: string, name: string): string {
  const value = new RegExp(`\\b${name}="([^"]*)"`).exec(element)?.[1];
  if (value === undefined) throw new Error(`the element has no ${name}`);
  return value;
}
