// `grantry generate-key`: what it prints is accepted as the manifest of a client, and what it writes signs for that client.

import { createPrivateKey, type JsonWebKeyInput } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import type { SigningAlgorithm } from '../../../src/oauth/values/signature.ts';
import { asserted, assertionOf } from '../../oauth/client-auth/client-assertions.ts';
import { ALGORITHMS } from '../../oauth/values/signed-tokens.ts';
import { endProcesses, grantry, post, startDev } from '../grantry-process.ts';

const folder = mkdtempSync(join(tmpdir(), 'grantry-keys-'));
afterAll(async () => {
  await endProcesses();
  rmSync(folder, { recursive: true });
});

function manifestOf(algorithm: SigningAlgorithm, printed: string): string {
  const head = { apiVersion: 'grantry.dev/v1alpha1', kind: 'OAuthClient', metadata: { name: algorithm.toLowerCase() } };
  const spec = { grantTypes: ['client_credentials'], scopes: ['default/read'], defaultScopes: ['default/read'] };
  const indented = printed.replace(/^/gm, '      ');
  return `${stringify({ ...head, spec })}  auth:\n    method: private_key_jwt\n    privateKeyJwt:\n${indented}\n`;
}

describe('grantry generate-key', () => {
  it('for each algorithm → a key for which a server that follows the printed manifest gives a token', async () => {
    const clients = join(folder, 'clients');
    const keys = new Map<SigningAlgorithm, string>();
    const manifests: string[] = [];
    for (const algorithm of ALGORITHMS) {
      const file = join(folder, `${algorithm}.jwk`);
      const { code, output } = await grantry(['generate-key', file, '--algorithm', algorithm]);
      expect(code).toBe(0);
      expect(output).not.toMatch(/^\s*-?\s*(?:d|p|q|dp|dq|qi):/m);
      keys.set(algorithm, file);
      manifests.push(manifestOf(algorithm, output));
    }
    mkdirSync(clients);
    writeFileSync(join(clients, 'all.yaml'), manifests.join('---\n'));
    const { issuer } = await startDev(clients);
    for (const [algorithm, file] of keys) {
      const { kid, ...key } = JSON.parse(readFileSync(file, 'utf8'));
      const privateKey = createPrivateKey({ key, format: 'jwk' } satisfies JsonWebKeyInput);
      const party = { clientId: `default.${algorithm.toLowerCase()}`, issuer, now: Date.now() };
      const assertion = await assertionOf({ algorithm, privateKey }, party, {}, { kid });
      const answer = await post(`${issuer}/token`, { grant_type: 'client_credentials', ...asserted(assertion) });
      expect([algorithm, answer.status]).toEqual([algorithm, 200]);
    }
  });

  it('without --algorithm → ES256, in a file that only its owner may read', async () => {
    const file = join(folder, 'default.jwk');
    expect((await grantry(['generate-key', file])).code).toBe(0);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ kty: 'EC', crv: 'P-256', alg: 'ES256', use: 'sig' });
  });

  it('given a file that exists → 1, and the file as it was', async () => {
    const file = join(folder, 'taken.jwk');
    writeFileSync(file, 'the key in use');
    expect(await grantry(['generate-key', file])).toMatchObject({
      code: 1,
      output: '',
      errors: expect.stringContaining(file),
    });
    expect(readFileSync(file, 'utf8')).toBe('the key in use');
  });

  it('given a folder that does not exist → 1, and nothing printed', async () => {
    const file = join(folder, 'absent/key.jwk');
    expect(await grantry(['generate-key', file])).toMatchObject({
      code: 1,
      output: '',
      errors: expect.stringContaining('ENOENT'),
    });
    expect(existsSync(file)).toBe(false);
  });

  it.each([[['generate-key']], [['generate-key', join(folder, 'x.jwk'), '--algorithm', 'HS256']]])(
    'given %j → 2',
    async (args) => {
      expect(await grantry(args)).toMatchObject({ code: 2, output: '' });
      expect(existsSync(join(folder, 'x.jwk'))).toBe(false);
    },
  );
});
