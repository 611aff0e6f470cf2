// kubelogin as kubectl starts it: a program that prints a credential, after a sign-in at its own address on this machine.

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { decodeJwt, decodeProtectedHeader } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../free-port.ts';
import { succeeds, until } from '../until.ts';
import { startGrantryProvider } from './setup/grantry-provider.ts';
import { describeConsumers } from './setup/programs.ts';
import { ALGORITHMS, PERSON, type Provider } from './setup/provider.ts';
import { Visitor } from './setup/visitor.ts';

await describeConsumers(['kubelogin'], (program) =>
  describe.each(ALGORITHMS)('with ID tokens by %s', (algorithm) => {
    const folder = mkdtempSync(join(tmpdir(), 'grantry-consumer-'));
    let address: string;
    let provider: Provider;

    beforeAll(async () => {
      address = `http://localhost:${await freePort()}`;
      provider = await startGrantryProvider({
        consumers: [{ clientId: 'shop.kubectl', redirectUri: address, algorithm }],
      });
    });
    afterAll(async () => {
      await provider?.stop();
      rmSync(folder, { recursive: true });
    });

    /** The claims of the ID token in the credential that it prints. */
    async function getToken(...more: readonly string[]) {
      const words = [
        'get-token',
        `--oidc-issuer-url=${provider.issuer}`,
        '--oidc-client-id=shop.kubectl',
        '--oidc-extra-scope=profile,email,groups',
        `--token-cache-dir=${folder}`,
        `--listen-address=${new URL(address).host.replace('localhost', '127.0.0.1')}`,
        '--skip-open-browser',
      ];
      const { stdout } = await promisify(execFile)(program, [...words, ...more]);
      const { token } = (JSON.parse(stdout) as { status: { token: string } }).status;
      expect(decodeProtectedHeader(token)).toMatchObject({ alg: algorithm });
      return decodeJwt(token);
    }

    it('given a first use → a sign-in; later ones → none, and a changed group after a refresh', async () => {
      const visitor = new Visitor(provider);
      const printed = getToken();
      await until('kubelogin listens', () => succeeds(fetch(address, { redirect: 'manual' })));
      expect((await visitor.visit(address)).page.status).toBe(200);
      const { name, email, groups } = PERSON;
      const claims = await printed;
      expect(claims).toMatchObject({ aud: 'shop.kubectl', name, email, groups });

      expect(await getToken()).toEqual(claims);
      provider.setGroups(['auditors']);
      expect(await getToken('--force-refresh')).toMatchObject({ sub: claims.sub, groups: ['auditors'] });
    });
  }),
);
