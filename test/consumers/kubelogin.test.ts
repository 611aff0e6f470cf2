// kubelogin as the kubeconfig of the examples starts it: a program that prints a credential, after a sign-in at its own address
// on this machine.

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { decodeJwt, decodeProtectedHeader, type JWTPayload } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { freePort } from '../free-port.ts';
import { succeeds, until } from '../until.ts';
import { startExampleProvider } from './setup/example-provider.ts';
import { KUBELOGIN_ADDRESS, kubeloginUser } from './setup/kubectl-user.ts';
import { describeConsumers } from './setup/programs.ts';
import { ALGORITHMS, PERSON, type Provider } from './setup/provider.ts';
import { Visitor } from './setup/visitor.ts';

await describeConsumers(['kubelogin'], (program) =>
  describe.each(ALGORITHMS)('with ID tokens by %s', (algorithm) => {
    const tokens = mkdtempSync(join(tmpdir(), 'grantry-consumer-'));
    let address: string;
    let kubeconfig: string;
    let provider: Provider;
    let visitor: Visitor;

    beforeAll(async () => {
      address = `http://localhost:${await freePort()}`;
      const example = await startExampleProvider({
        program: 'kubernetes',
        addresses: { [KUBELOGIN_ADDRESS]: address },
        spec: { tokens: { idTokenSigningAlgorithm: algorithm } },
      });
      provider = example.provider;
      kubeconfig = example.file('kubeconfig.yaml');
    });
    beforeEach(() => {
      visitor = new Visitor(provider);
      provider.setGroups(PERSON.groups);
    });
    afterAll(async () => {
      await provider?.stop();
      rmSync(tokens, { recursive: true });
    });

    /** The claims of the ID token in the credential that it prints. */
    async function getToken(...more: readonly string[]): Promise<JWTPayload> {
      const { exec } = kubeloginUser(kubeconfig, { program, address, tokens }, ...more);
      const { stdout } = await promisify(execFile)(exec.command, exec.args);
      const { token } = (JSON.parse(stdout) as { status: { token: string } }).status;
      expect(decodeProtectedHeader(token)).toMatchObject({ alg: algorithm });
      return decodeJwt(token);
    }

    /** The same, where it asks for a sign-in. */
    async function signIn(...more: readonly string[]): Promise<JWTPayload> {
      const printed = getToken(...more);
      await until('kubelogin listens', () => succeeds(fetch(address, { redirect: 'manual' })));
      expect((await visitor.visit(address)).page.status).toBe(200);
      return await printed;
    }

    const forget = () => promisify(execFile)(program, ['clean', `--token-cache-dir=${tokens}`]);

    it('given a first use → a sign-in; later ones → none, and a changed group after a refresh', async () => {
      const claims = await signIn();
      const { name, email, groups } = PERSON;
      expect(claims).toMatchObject({ aud: 'platform.kubectl', name, email, groups });
      expect(await getToken()).toEqual(claims);

      provider.setGroups(['auditors']);
      expect(await getToken('--force-refresh')).toMatchObject({ sub: claims.sub, groups: ['auditors'] });
    });

    it('given a sign-out at grantry → a sign-in in place of a refresh', async () => {
      await forget();
      await signIn();
      await visitor.visit(provider.endpoints.endSession);
      await signIn('--force-refresh');
      expect(visitor.signIns).toBe(2);
    });

    it('given new signing keys → a refresh, and a sign-in', async () => {
      await forget();
      const claims = await signIn();
      await provider.rotateSigningKey();
      expect(await getToken('--force-refresh')).toMatchObject({ sub: claims.sub });
      await forget();
      expect(await signIn()).toMatchObject({ sub: claims.sub });
    });
  }),
);
