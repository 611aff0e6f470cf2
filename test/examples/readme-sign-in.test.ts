// README › Sign in, done as it is printed: the address in a browser, and the code that the person copies from the address bar.

import { readFile } from 'node:fs/promises';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { answerIn, fillIn } from '../clients/person.ts';
import { TestBrowser } from '../http/sign-in/sign-in-browser.ts';
import { shell } from '../processes/grantry-process.ts';
import { endAll, Issuer } from './notes-servers.ts';

const ANSWERS = { username: 'demo', password: 'demo', decision: 'allow' } as const;

let issuer: Issuer;
let address: URL;
let redemption: string;

beforeAll(async () => {
  const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8');
  const [, printed = '', block = ''] =
    /\*\*Sign in\.\*\*.*?```\n(http\S+)\n```.*?```sh\ncode=….*?\n(.*?)```/s.exec(readme) ?? [];
  issuer = await Issuer.start();
  const here = (text: string) =>
    text.replaceAll('http://localhost:9400', issuer.issuer).replaceAll('examples/quickstart', issuer.folder);
  address = new URL(here(printed));
  redemption = here(block);
});
afterAll(endAll);

it('given the address of README → the consent page has words for scope and API, and names them in the details alone', async () => {
  const browser = new TestBrowser(address.origin, address.origin);
  const login = fillIn(await browser.get(`${address.pathname}${address.search}`), ANSWERS);
  const signedIn = await browser.post(login?.action ?? '', login?.fields ?? {});
  const { body } = await browser.get(new URL(signedIn.location ?? '', address).pathname);
  const [, page = '', details = ''] = /<main\b(.*?)<details>(.*?)<\/details>/s.exec(body) ?? [];
  expect(page).toContain('Photo album');
  expect(page).toContain('<bdi>See your photos</bdi>');
  expect(page).toContain('<bdi>Photos</bdi>');
  for (const name of ['default/photos.read', 'urn:grantry:ns:default:photos']) {
    expect(page).not.toContain(name);
    expect(details).toContain(name);
  }
});

it('given the code of the address bar → the printed command gets a token for the API, and a refresh token', async () => {
  const target = await answerIn(new TestBrowser(address.origin, address.origin), address, ANSWERS);
  expect(`${target.origin}${target.pathname}`).toBe(address.searchParams.get('redirect_uri'));
  const answer = JSON.parse(await shell(`code='${target.searchParams.get('code')}'\n${redemption}`)) as {
    readonly access_token: string;
    readonly refresh_token?: string;
  };
  expect(decodeJwt(answer.access_token)).toMatchObject({
    aud: 'urn:grantry:ns:default:photos',
    scope: 'default/photos.read',
  });
  expect(answer.refresh_token).toMatch(/./);
});
