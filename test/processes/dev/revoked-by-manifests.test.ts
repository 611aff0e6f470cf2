// Tokens of a signed-in person whose client's manifest changes: each change alone is felt at userinfo and by the client's hint.

import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { answerIn } from '../../clients/person.ts';
import { PKCE } from '../../grantry.ts';
import { TestBrowser } from '../../http/sign-in/sign-in-browser.ts';
import { folderOf, removeFolder } from '../../manifests/a-folder.ts';
import { until } from '../../until.ts';
import { endProcesses, post, startDev } from '../grantry-process.ts';

const CALLBACK = 'https://shop.example/cb';
const PERSON = { username: 'ann', password: 'a long password', decision: 'allow' } as const;
const FORMATS = ['jwt', 'opaque'] as const;

type Format = (typeof FORMATS)[number];

/** @param more lines of the spec @param scopes what the client may have */
function manifest(format: Format, more = '', scopes = '[openid, profile]'): string {
  return `apiVersion: grantry.dev/v1alpha1
kind: OAuthClient
metadata: {name: ${format}}
spec:
  grantTypes: [authorization_code]
  auth: {method: none}
  redirectUris: ['${CALLBACK}']
  scopes: ${scopes}
  tokens: {accessTokenFormat: ${format}}
${more}`;
}

let folder: string;
let dev: Awaited<ReturnType<typeof startDev>>;
beforeAll(async () => {
  folder = await folderOf({ 'jwt.yaml': manifest('jwt'), 'opaque.yaml': manifest('opaque') });
  dev = await startDev(folder, ['--user', `${PERSON.username}:${PERSON.password}`]);
});
afterAll(async () => {
  await endProcesses();
  await removeFolder(folder);
});

function authorizeUrl(format: Format): URL {
  const url = new URL(`${dev.issuer}/authorize`);
  url.search = new URLSearchParams({
    response_type: 'code',
    client_id: `default.${format}`,
    redirect_uri: CALLBACK,
    scope: 'openid profile',
    code_challenge: PKCE.challenge,
    code_challenge_method: 'S256',
  }).toString();
  return url;
}

/** Restores the manifest and signs the person in, in a browser of its own. */
async function tokensOf(format: Format) {
  const url = authorizeUrl(format);
  await writeFile(join(folder, `${format}.yaml`), manifest(format));
  await until(`${format} is served`, async () => (await fetch(url)).status === 200);
  const { searchParams } = await answerIn(new TestBrowser(dev.address, dev.issuer), url, PERSON);
  const code = searchParams.get('code') ?? '';
  const form = { grant_type: 'authorization_code', client_id: `default.${format}`, redirect_uri: CALLBACK, code };
  const { body } = await post(`${dev.issuer}/token`, { ...form, code_verifier: PKCE.verifier });
  return { accessToken: String(body.access_token), idToken: String(body.id_token) };
}

/** Status and error. */
async function userinfo(token: string): Promise<string> {
  const response = await fetch(`${dev.issuer}/userinfo`, { headers: { authorization: `Bearer ${token}` } });
  const { error = '' } = (await response.json()) as { readonly error?: string };
  return `${response.status} ${error}`.trim();
}

async function signOutStatus(idToken: string): Promise<number> {
  return (await fetch(`${dev.issuer}/logout?${new URLSearchParams({ id_token_hint: idToken })}`)).status;
}

it.each<[string, string, number, (format: Format) => string | undefined]>([
  ['is suspended', '401 invalid_token', 400, (format) => manifest(format, '  suspended: true\n')],
  ['is refused', '401 invalid_token', 400, (format) => manifest(format, '', '[openid, profile, elsewhere/read]')],
  ['is deleted', '401 invalid_token', 400, () => undefined],
  [
    'has a revokeTokensBefore',
    '401 invalid_token',
    200,
    (format) => manifest(format, `  revokeTokensBefore: '${new Date().toISOString()}'\n`),
  ],
  ['loses openid', '403 insufficient_scope', 200, (format) => manifest(format, '', '[profile]')],
])(
  'given a client that %s → its tokens give %s at userinfo, its hint %i at /logout',
  async (_, refused, status, change) => {
    const issued = await Promise.all(FORMATS.map(async (format) => ({ format, ...(await tokensOf(format)) })));
    for (const { accessToken } of issued) expect(await userinfo(accessToken)).toBe('200');
    for (const { format } of issued) {
      const [file, text] = [join(folder, `${format}.yaml`), change(format)];
      await (text === undefined ? rm(file) : writeFile(file, text));
    }
    for (const { format, accessToken, idToken } of issued) {
      await until(`the token of ${format} is refused`, async () => (await userinfo(accessToken)) === refused);
      expect(await signOutStatus(idToken)).toBe(status);
    }
  },
);
