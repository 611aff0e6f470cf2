// Argo CD's own handlers of login, callback and logout, with the settings that its ConfigMap has for a provider.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../free-port.ts';
import { startGrantryProvider } from './setup/grantry-provider.ts';
import { describeConsumers } from './setup/programs.ts';
import { ALGORITHMS, PERSON, type Provider } from './setup/provider.ts';
import { ServedProgram } from './setup/served-program.ts';
import { Visitor } from './setup/visitor.ts';

const CLIENT = { clientId: 'shop.argocd', secret: 'a-secret-of-more-than-thirty-two-bytes' };

await describeConsumers(['argo-cd'], (program) =>
  describe.each(ALGORITHMS)('with ID tokens by %s', (algorithm) => {
    const argo = new ServedProgram();
    let address: string;
    let provider: Provider;

    beforeAll(async () => {
      const port = await freePort();
      address = `http://127.0.0.1:${port}`;
      provider = await startGrantryProvider({
        consumers: [{ ...CLIENT, algorithm, redirectUri: `${address}/auth/callback`, postLogoutRedirectUri: address }],
      });
      const file = join(argo.folder, 'oidc.config');
      writeFileSync(file, oidcConfig(provider));
      const words = ['-listen', `127.0.0.1:${port}`, '-url', address, '-oidc-config', file];
      await argo.start(program, {
        words: [...words, '-client-secret', CLIENT.secret],
        address: `${address}/session`,
      });
    });
    afterAll(async () => {
      await Promise.all([argo.stop(), provider?.stop()]);
    });

    it('given a sign-in → name, address and groups in its session; signed out → none, and asked again', async () => {
      const visitor = new Visitor(provider);
      const { name, email, groups } = PERSON;
      await visitor.visit(`${address}/auth/login`);
      const claims = { iss: provider.issuer, aud: CLIENT.clientId, name, email, groups };
      expect(await visitor.json(`${address}/session`)).toMatchObject(claims);

      await visitor.visit(`${address}/auth/logout`);
      expect((await visitor.visit(`${address}/session`)).page.status).toBe(401);
      provider.setGroups(['auditors']);
      await visitor.visit(`${address}/auth/login`);
      expect(visitor.signIns).toBe(2);
      expect(await visitor.json(`${address}/session`)).toMatchObject({ groups: ['auditors'] });
    });
  }),
);

/** `oidc.config` of argocd-cm; `$oidc.clientSecret` stands for what the Secret argocd-secret has. */
function oidcConfig({ issuer, endpoints }: Provider): string {
  return `name: grantry
issuer: ${issuer}
clientID: ${CLIENT.clientId}
clientSecret: $oidc.clientSecret
requestedScopes: [openid, profile, email, groups]
enablePKCEAuthentication: true
logoutURL: ${endpoints.endSession}?id_token_hint={{token}}&post_logout_redirect_uri={{logoutRedirectURL}}
`;
}
