// The oauth2-oidc-sdk of Nimbus, in Java, unmodified: an assertion that has no time of issue, proofs under both settings of the
// nonce, and certificates of both kinds.

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { MadeCertificate } from '../client-certificates.ts';
import { byKey, type MutualTlsGrantry, MutualTlsWorld } from '../http/mtls/mutual-tls-grantry.ts';
import { assertedBy } from '../oauth/client-auth/client-assertions.ts';
import { aKey } from '../oauth/values/signed-tokens.ts';
import { compileJava, describeJava, runJava } from './java.ts';

const grantTypes = ['client_credentials'];
const SECRET = 'a-secret-of-more-than-thirty-two-bytes';

describeJava('oauth2-oidc-sdk of Nimbus', () => {
  const world = new MutualTlsWorld();
  const key = aKey('ES256');
  const job = world.maker.client(world.authority, { extensions: ['subjectAltName=DNS:job.team.svc'] });
  const own = world.maker.make({ subject: '/CN=own' });
  const senderConstraint = 'MutualTLS';
  const clients = [
    { clientId: 'team.signer', authMethod: 'private_key_jwt', assertion: assertedBy([key]), grantTypes },
    { clientId: 'team.dpop', secret: SECRET, senderConstraint: 'DPoP' },
    {
      clientId: 'team.tls_client_auth',
      authMethod: 'tls_client_auth',
      certificate: { name: 'sanDns', value: 'job.team.svc' },
      grantTypes,
      senderConstraint,
    },
    {
      clientId: 'team.self_signed_tls_client_auth',
      authMethod: 'self_signed_tls_client_auth',
      certificate: byKey(own),
      grantTypes,
      senderConstraint,
    },
  ] as const;
  let onDemand: MutualTlsGrantry;
  let required: MutualTlsGrantry;

  beforeAll(async () => {
    compileJava(join(import.meta.dirname, 'java/NimbusClient.java'), world.maker.folder);
    onDemand = await world.start({ clients });
    required = await world.start({ clients, dpopNonce: 'required' });
  });
  afterAll(() => world.maker.remove());

  /** What the program prints. */
  function run({ grantry }: MutualTlsGrantry, how: string, clientId: string, ...words: readonly string[]) {
    return runJava('NimbusClient', world.maker.folder, [how, grantry.issuer, clientId, ...words]);
  }

  /** As the key store that Java reads. */
  function keyStoreOf({ certificateFile, keyFile }: MadeCertificate): string {
    const file = `${keyFile}.p12`;
    const pair = ['-in', certificateFile, '-inkey', keyFile];
    execFileSync('openssl', ['pkcs12', '-export', ...pair, '-passout', 'pass:changeit', '-out', file]);
    return file;
  }

  it('with an assertion without a time of issue and without a key id → a token', async () => {
    const file = join(world.maker.folder, 'key.json');
    writeFileSync(file, JSON.stringify(key.privateKey.export({ format: 'jwk' })));
    expect(decodeJwt(await run(onDemand, 'assertion', 'team.signer', file))).toMatchObject({ sub: 'team.signer' });
  });

  it.each(['on demand', 'required'])(
    'with proofs, where a nonce is %s → tokens that are bound to the key',
    async (rule) => {
      const [token = '', jkt] = (
        await run(rule === 'required' ? required : onDemand, 'dpop', 'team.dpop', SECRET)
      ).split(' ');
      expect(decodeJwt(token)).toMatchObject({ sub: 'team.dpop', cnf: { jkt } });
    },
  );

  it.each([
    ['tls_client_auth', job],
    ['self_signed_tls_client_auth', own],
  ])('with a certificate by %s, at the alias of the token endpoint → a bound token', async (method, certificate) => {
    const words = [keyStoreOf(certificate), world.server.certificateFile, method];
    const token = await run(onDemand, 'certificate', `team.${method}`, ...words);
    expect(decodeJwt(token)).toMatchObject({ sub: `team.${method}`, cnf: { 'x5t#S256': expect.any(String) } });
  });

  it('with the certificate of another client → invalid_client', async () => {
    const words = [keyStoreOf(own), world.server.certificateFile, 'tls_client_auth'];
    await expect(run(onDemand, 'certificate', 'team.tls_client_auth', ...words)).rejects.toMatchObject({
      stderr: expect.stringContaining('"invalid_client"'),
    });
  });
});
