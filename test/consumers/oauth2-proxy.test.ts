// oauth2-proxy in front of a page: what it learns of the person, a refresh, and a sign-out that ends the session at the provider.

import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../free-port.ts';
import { until } from '../until.ts';
import { startGrantryProvider } from './setup/grantry-provider.ts';
import { describeConsumers } from './setup/programs.ts';
import { ALGORITHMS, PERSON, type Provider } from './setup/provider.ts';
import { ServedProgram } from './setup/served-program.ts';
import { Visitor } from './setup/visitor.ts';

const CLIENT = { clientId: 'shop.web', secret: 'a-secret-of-more-than-thirty-two-bytes' };

await describeConsumers(['oauth2-proxy'], (program) =>
  describe.each(ALGORITHMS)('with ID tokens by %s', (algorithm) => {
    const proxy = new ServedProgram();
    let address: string;
    let provider: Provider;

    beforeAll(async () => {
      const port = await freePort();
      address = `http://127.0.0.1:${port}`;
      provider = await startGrantryProvider({
        consumers: [
          { ...CLIENT, algorithm, redirectUri: `${address}/oauth2/callback`, postLogoutRedirectUri: `${address}/` },
        ],
      });
      const settings = {
        'http-address': `127.0.0.1:${port}`,
        provider: 'oidc',
        'oidc-issuer-url': provider.issuer,
        'client-id': CLIENT.clientId,
        'client-secret': CLIENT.secret,
        'redirect-url': `${address}/oauth2/callback`,
        scope: 'openid profile email groups',
        'code-challenge-method': 'S256',
        'cookie-secret': randomBytes(16).toString('hex'),
        'cookie-secure': 'false',
        // Older sessions are refreshed at the next request.
        'cookie-refresh': '1s',
        'email-domain': '*',
        'skip-provider-button': 'true',
        'whitelist-domain': new URL(provider.issuer).host,
        upstream: 'static://200',
      };
      const words = Object.entries(settings).map(([name, value]) => `--${name}=${value}`);
      await proxy.start(program, words, `${address}/ping`);
    });
    afterAll(async () => {
      await Promise.all([proxy.stop(), provider?.stop()]);
    });

    it('given a sign-in → address and groups; a changed group after a refresh; signed out → asked again', async () => {
      const visitor = new Visitor(provider);
      expect((await visitor.visit(`${address}/`)).page.status).toBe(200);
      const { username, email, groups } = PERSON;
      const userinfo = `${address}/oauth2/userinfo`;
      expect(await visitor.json(userinfo)).toMatchObject({ preferredUsername: username, email, groups });

      provider.setGroups(['auditors']);
      await until('the changed group is known', async () => {
        const { groups: now } = await visitor.json(userinfo);
        return JSON.stringify(now) === '["auditors"]';
      });
      expect(visitor.signIns).toBe(1);

      const query = new URLSearchParams({ post_logout_redirect_uri: `${address}/`, client_id: CLIENT.clientId });
      const endSession = `${provider.endpoints.endSession}?${query}`;
      // Out at the proxy, out at the provider, and back at a page that needs a sign-in.
      await visitor.visit(`${address}/oauth2/sign_out?${new URLSearchParams({ rd: endSession })}`);
      expect(visitor.signIns).toBe(2);
    });
  }),
);
