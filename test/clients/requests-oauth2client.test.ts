// requests-oauth2client, in Python, unmodified: proofs with ES256 under both settings of the nonce, beside a secret and beside an
// assertion.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { decodeJwt } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Grantry, startGrantry, TestClock } from '../grantry.ts';
import { folderOfTest } from '../manifests/a-folder.ts';
import { assertedBy } from '../oauth/client-auth/client-assertions.ts';
import { aKey, readKey } from '../oauth/values/signed-tokens.ts';
import { describePython, runPython } from './python.ts';

const SECRET = 'a-secret-of-more-than-thirty-two-bytes';
const KEY = aKey('ES256');
const KID = 'of-python';

/** Two tokens by one key; prints the second and the thumbprint. */
function program(issuer: string, credentials: string): string {
  return `
import json
from requests_oauth2client import ClientSecretBasic, DPoPKey, OAuth2Client, PrivateKeyJwt

secret, signer = "${SECRET}", json.load(open("key.json"))
client = OAuth2Client(
    token_endpoint="${issuer}/token", auth=${credentials}, issuer="${issuer}", dpop_bound_access_tokens=True, testing=True
)
key = DPoPKey.generate(alg="ES256")
for time in range(2):
    token = client.client_credentials(scope="read", dpop_key=key)
print(token.access_token, key.private_key.thumbprint(), token.token_type)
`;
}

describePython('requests-oauth2client', () => {
  describe.each(['on-demand', 'required'] as const)('where a nonce is %s', (dpopNonce) => {
    let grantry: Grantry;
    beforeAll(async () => {
      const clock = new TestClock();
      clock.advance(Date.now() - clock.now());
      const key = { ...KEY, key: readKey({ ...KEY.jwk, kid: KID }) };
      const clients = [
        { clientId: 'team.secret', secret: SECRET, senderConstraint: 'DPoP' },
        {
          clientId: 'team.signer',
          authMethod: 'private_key_jwt',
          assertion: assertedBy([key]),
          grantTypes: ['client_credentials'],
          senderConstraint: 'DPoP',
        },
      ] as const;
      grantry = await startGrantry({ clients, clock, dpopNonce });
    });

    it.each([
      ['a secret', 'team.secret', () => 'ClientSecretBasic("team.secret", secret)'],
      ['an assertion', 'team.signer', () => `PrivateKeyJwt("team.signer", signer, aud="${grantry.issuer}")`],
    ])('beside %s → tokens that are bound to its key', async (_, sub, credentials) => {
      const folder = await folderOfTest({});
      const jwk = { ...KEY.privateKey.export({ format: 'jwk' }), alg: 'ES256', kid: KID };
      writeFileSync(join(folder, 'key.json'), JSON.stringify(jwk));
      const printed = await runPython(program(grantry.issuer, credentials()), folder);
      const [token = '', jkt, type] = printed.split(' ');
      expect(type).toBe('DPoP');
      expect(decodeJwt(token)).toMatchObject({ sub, cnf: { jkt } });
    });
  });
});
