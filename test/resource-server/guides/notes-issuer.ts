// The issuer of the guides to APIs in other languages: `grantry dev` over the manifests of a page, and tokens of it, good and bad.
// The bad ones are signed by its own key where they can be: only the check that a case is about refuses them.

import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { decodeJwt, decodeProtectedHeader, SignJWT } from 'jose';
import type { SigningAlgorithm } from '../../../src/oauth/values/signature.ts';
import { folderOf } from '../../manifests/a-folder.ts';
import { aKey } from '../../oauth/values/signed-tokens.ts';
import { type GrantryProcess, startDev } from '../../processes/grantry-process.ts';
import { until } from '../../until.ts';

const AUDIENCE = 'urn:grantry:ns:notes:api';

const MANIFESTS_FILE = 'notes.yaml';
const KEY_FILE = 'key.yaml';

function signingKey(algorithm: SigningAlgorithm, revokedKeyIds: readonly string[] = []): string {
  const spec = JSON.stringify({ algorithm, revokedKeyIds });
  return `apiVersion: grantry.dev/v1alpha1\nkind: SigningKey\nmetadata: {name: default}\nspec: ${spec}\n`;
}

type Json = Record<string, unknown>;

/** What of a token is other than in one that the issuer has issued; undefined removes a member. */
interface Difference {
  readonly claims?: Json;
  readonly header?: Json;
}

export class NotesIssuer {
  readonly issuer: string;
  readonly #folder: string;
  readonly #process: GrantryProcess;

  private constructor({ issuer, folder, grantry }: { issuer: string; folder: string; grantry: GrantryProcess }) {
    this.issuer = issuer;
    this.#folder = folder;
    this.#process = grantry;
  }

  /** @param manifests of the page, with the client notes/reader @param algorithm of the signing key */
  static async serve(manifests: string, algorithm: SigningAlgorithm = 'ES256'): Promise<NotesIssuer> {
    const folder = await folderOf({ [MANIFESTS_FILE]: manifests, [KEY_FILE]: signingKey(algorithm) });
    return new NotesIssuer(Object.assign(await startDev(folder), { folder }));
  }

  /** Writes other manifests in place of those that are served; they count soon. */
  edit(manifests: string): void {
    writeFileSync(join(this.#folder, MANIFESTS_FILE), manifests);
  }

  /** Makes it stand still: it takes connections and answers nothing. */
  stop(): void {
    this.#process.signal('SIGSTOP');
  }

  /** Ends the server; what it has issued stays readable. */
  async end(): Promise<void> {
    await this.#process.end('SIGKILL');
  }

  async remove(): Promise<void> {
    await this.end();
    rmSync(this.#folder, { recursive: true });
  }

  /** Lines of a page with the issuer and the folder of this one. */
  at(lines: string): string {
    return lines.replaceAll('http://localhost:9400', this.issuer).replaceAll('FOLDER', this.#folder);
  }

  /** The secret of a client, by its id. */
  secretOf(clientId: string): string {
    return readFileSync(join(this.#folder, `.grantry/secrets/${clientId}.secret`), 'utf8').trim();
  }

  /** A token of the token endpoint. @param form beside the grant type */
  async token(
    form: Readonly<Record<string, string>> = {},
    clientId = 'notes.reader',
    headers: Readonly<Record<string, string>> = {},
  ): Promise<string> {
    const { status, body } = await this.#post(
      '/token',
      { grant_type: 'client_credentials', ...form },
      clientId,
      headers,
    );
    if (status !== 200) throw new Error(`no token: ${body}`);
    return String((JSON.parse(body) as Json).access_token);
  }

  /** Revokes a token of a client. */
  async revoke(token: string, clientId = 'notes.reader'): Promise<void> {
    const { status } = await this.#post('/revoke', { token }, clientId);
    if (status !== 200) throw new Error(`not revoked: ${status}`);
  }

  async #post(path: string, form: Readonly<Record<string, string>>, clientId: string, more: object = {}) {
    const basic = Buffer.from(`${clientId}:${this.secretOf(clientId)}`).toString('base64');
    const headers = { authorization: `Basic ${basic}`, ...more };
    const init = { method: 'POST', body: new URLSearchParams(form), headers };
    const response = await fetch(`${this.issuer}${path}`, init);
    return { status: response.status, body: await response.text() };
  }

  /** Revokes the key that signs, which must be one of ES256; ends once it is out of the key set. */
  async revokeKey(): Promise<void> {
    const { kid = '' } = decodeProtectedHeader(await this.token());
    writeFileSync(join(this.#folder, KEY_FILE), signingKey('ES256', [kid]));
    const isOut = async () => !(await (await fetch(`${this.issuer}/.well-known/jwks.json`)).text()).includes(kid);
    await until('the key is out of the key set', isOut);
  }

  /** A token with a difference, signed by the key of the issuer, or by this one. */
  async forged({ claims = {}, header = {} }: Difference, key: KeyObject | Uint8Array = this.key): Promise<string> {
    const genuine = await this.token();
    const protectedHeader = JSON.parse(JSON.stringify(Object.assign(decodeProtectedHeader(genuine), header)));
    const payload = JSON.parse(JSON.stringify(Object.assign(decodeJwt(genuine), claims)));
    return await new SignJWT(payload).setProtectedHeader(protectedHeader).sign(key);
  }

  /** The private key that signs. */
  get key(): KeyObject {
    const files = globSync('.grantry/keys/*.pem', { cwd: this.#folder });
    // Beside it lies the key of ID tokens, where the manifest has none of RS256.
    const file = files.find((each) => !each.includes('default-rs256')) ?? '';
    return createPrivateKey(readFileSync(join(this.#folder, file)));
  }
}

const seconds = () => Math.floor(Date.now() / 1000);

/** Tokens that no API may take, by what is wrong with them. */
export const BAD_TOKENS: Readonly<Record<string, (of: NotesIssuer) => Promise<string>>> = {
  'that has expired': (of) => of.forged({ claims: { exp: seconds() - 10, iat: seconds() - 70 } }),
  'without an expiry': (of) => of.forged({ claims: { exp: undefined } }),
  'for another API': (of) => of.forged({ claims: { aud: 'urn:grantry:ns:notes:other' } }),
  'for this API and another one': (of) => of.forged({ claims: { aud: [AUDIENCE, 'urn:grantry:ns:notes:other'] } }),
  'of another issuer': (of) => of.forged({ claims: { iss: 'https://other.example' } }),
  'of typ JWT, as ID tokens are': (of) => of.forged({ header: { typ: 'JWT' } }),
  'without typ': (of) => of.forged({ header: { typ: undefined } }),
  'without client_id': (of) => of.forged({ claims: { client_id: undefined } }),
  'without sub': (of) => of.forged({ claims: { sub: undefined } }),
  'without jti': (of) => of.forged({ claims: { jti: undefined } }),
  'without iat': (of) => of.forged({ claims: { iat: undefined } }),
  'bound to a key': (of) => of.forged({ claims: { cnf: { jkt: 'A'.repeat(43) } } }),
  'of another key under the same kid': async (of) => {
    const algorithm = decodeProtectedHeader(await of.token()).alg as SigningAlgorithm;
    return of.forged({}, aKey(algorithm).privateKey);
  },
  'of a key that the issuer has not': (of) => of.forged({ header: { kid: 'unknown' } }, of.key),
  'with HS256 by the public key': (of) => {
    const pem = createPublicKey(of.key).export({ type: 'spki', format: 'pem' });
    return of.forged({ header: { alg: 'HS256' } }, Buffer.from(pem));
  },
  'with alg none': async (of) => {
    const [, payload] = (await of.token()).split('.');
    return `${Buffer.from('{"alg":"none","typ":"at+jwt"}').toString('base64url')}.${payload}.`;
  },
  'whose scope was changed': async (of) => {
    const [header, payload = '', signature] = (await of.token()).split('.');
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString());
    const changed = JSON.stringify({ ...claims, scope: 'notes/read notes/write' });
    return `${header}.${Buffer.from(changed).toString('base64url')}.${signature}`;
  },
  'that is no JWT': async () => 'garbage',
};
