// Apache with mod_auth_openidc in front of a page: sign-in, what it hands on, a refresh, sign-out at the provider, and
// back-channel logout.

import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../free-port.ts';
import { until } from '../until.ts';
import { startGrantryProvider } from './setup/grantry-provider.ts';
import { describeConsumers } from './setup/programs.ts';
import { ALGORITHMS, PERSON, type Provider } from './setup/provider.ts';
import { ServedProgram } from './setup/served-program.ts';
import { Visitor } from './setup/visitor.ts';

const CLIENT = { clientId: 'shop.web', secret: 'a-secret-of-more-than-thirty-two-bytes' };
const MODULES = ['mpm_event', 'authn_core', 'authz_core', 'authz_user', 'dir', 'auth_openidc'];

await describeConsumers(['apache'], (program) =>
  describe.each(ALGORITHMS)('with ID tokens by %s', (algorithm) => {
    const apache = new ServedProgram();
    let address: string;
    let provider: Provider;

    beforeAll(async () => {
      const port = await freePort();
      address = `http://127.0.0.1:${port}`;
      const redirectUri = `${address}/private/callback`;
      provider = await startGrantryProvider({
        consumers: [
          {
            ...CLIENT,
            algorithm,
            redirectUri,
            postLogoutRedirectUri: `${address}/`,
            backchannelLogoutUri: `${redirectUri}?logout=backchannel`,
          },
        ],
      });
      const pages = join(apache.folder, 'pages');
      mkdirSync(join(pages, 'private'), { recursive: true });
      for (const folder of ['.', 'private']) writeFileSync(join(pages, folder, 'index.html'), `page of ${folder}`);
      const file = join(apache.folder, 'httpd.conf');
      writeFileSync(file, configuration({ port, redirectUri, pages }));
      // Started by root it serves as another user.
      chmodSync(apache.folder, 0o755);
      // One process, which ends with us.
      await apache.start(program, { words: ['-X', '-d', apache.folder, '-f', file], address: `${address}/` });
    });
    afterAll(async () => {
      await Promise.all([apache.stop(), provider?.stop()]);
    });

    function configuration({ port, redirectUri, pages }: { port: number; redirectUri: string; pages: string }): string {
      const modules = MODULES.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`);
      return `
${modules.join('\n')}
ServerName 127.0.0.1
Listen 127.0.0.1:${port}
PidFile ${apache.folder}/pid
DefaultRuntimeDir ${apache.folder}
ErrorLog "|/bin/cat"
User www-data
Group www-data
DocumentRoot ${pages}
DirectoryIndex index.html
OIDCProviderMetadataURL ${provider.issuer}/.well-known/openid-configuration
OIDCClientID ${CLIENT.clientId}
OIDCClientSecret ${CLIENT.secret}
OIDCRedirectURI ${redirectUri}
OIDCCryptoPassphrase a-passphrase-of-a-test
OIDCPKCEMethod S256
OIDCScope "openid profile email groups"
# Older claims are read again at the next request.
OIDCUserInfoRefreshInterval 1
OIDCInfoHook access_token userinfo id_token
<Location />
  Require all granted
</Location>
<Location /private>
  AuthType openid-connect
  Require valid-user
</Location>
`;
    }

    it('given a sign-in → name, address and groups, and a changed group after a refresh; signed out → asked again', async () => {
      const visitor = new Visitor(provider);
      expect((await visitor.visit(`${address}/private/`)).page.body).toBe('page of private');
      const callback = `${address}/private/callback`;
      const info = `${callback}?info=json`;
      const { name, email, groups } = PERSON;
      const told = await visitor.json(info);
      expect(told).toMatchObject({ userinfo: { name, email, groups }, id_token: { aud: CLIENT.clientId } });

      provider.setGroups(['auditors']);
      const refresh = new URLSearchParams({ refresh: `${address}/private/`, access_token: String(told.access_token) });
      expect((await visitor.visit(`${callback}?${refresh}`)).page.body).toBe('page of private');
      await until('the changed group is known', async () => {
        await visitor.visit(`${address}/private/`);
        const { userinfo, access_token } = await visitor.json(info);
        const { groups: now } = userinfo as { readonly groups?: unknown };
        return access_token !== told.access_token && JSON.stringify(now) === '["auditors"]';
      });
      expect(visitor.signIns).toBe(1);

      const logout = new URLSearchParams({ logout: `${address}/` });
      const { page } = await visitor.visit(`${callback}?${logout}`);
      expect(page.body).toBe('page of .');
      await visitor.visit(`${address}/private/`);
      expect(visitor.signIns).toBe(2);
    });

    it('given a sign-out at the provider alone → the session at Apache ends, by back-channel', async () => {
      const visitor = new Visitor(provider);
      await visitor.visit(`${address}/private/`);
      await visitor.visit(provider.endpoints.endSession);
      await until('Apache asks for a sign-in', async () => {
        await visitor.visit(`${address}/private/`);
        return visitor.signIns === 2;
      });
    });
  }),
);
