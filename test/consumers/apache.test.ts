// Apache with mod_auth_openidc and the configuration of its example in front of a page: sign-in, what it hands on, a refresh,
// sign-out at grantry, and back-channel logout.

import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { freePort } from '../free-port.ts';
import { until } from '../until.ts';
import { startExampleProvider } from './setup/example-provider.ts';
import { describeConsumers } from './setup/programs.ts';
import { ALGORITHMS, PERSON, type Provider } from './setup/provider.ts';
import { ServedProgram } from './setup/served-program.ts';
import { Visitor } from './setup/visitor.ts';

const MODULES = ['mpm_event', 'authn_core', 'authz_core', 'authz_user', 'dir', 'include', 'auth_openidc'];
const PRIVATE_PAGE = `page of private for ${PERSON.name}`;

await describeConsumers(['apache'], (program) =>
  describe.each(ALGORITHMS)('with ID tokens by %s', (algorithm) => {
    const apache = new ServedProgram();
    let address: string;
    let provider: Provider;

    beforeAll(async () => {
      const port = await freePort();
      address = `http://127.0.0.1:${port}`;
      const example = await startExampleProvider({
        program: 'apache',
        addresses: { 'https://intranet.example.com': address },
        spec: { tokens: { idTokenSigningAlgorithm: algorithm } },
      });
      ({ provider } = example);
      const file = join(apache.folder, 'httpd.conf');
      writeFileSync(file, `${serverWithPages(apache.folder, port)}${example.file('apache.conf')}${HERE}`);
      // Started by root it serves as another user.
      chmodSync(apache.folder, 0o755);
      // One process, which ends with us.
      const words = ['-X', '-d', apache.folder, '-f', file];
      await apache.start(program, { words, address: `${address}/`, environment: example.secret });
    });
    afterAll(async () => {
      await Promise.all([apache.stop(), provider?.stop()]);
    });
    beforeEach(() => provider.setGroups(PERSON.groups));

    const open = async (visitor: Visitor, folder = 'private') => (await visitor.visit(`${address}/${folder}/`)).page;
    const info = (visitor: Visitor) => visitor.json(`${address}/private/callback?info=json`);

    /** Has the tokens refreshed, and waits for a group that the person is in only now. */
    async function refresh(visitor: Visitor, group: string): Promise<void> {
      const old = await info(visitor);
      provider.setGroups([group]);
      const query = new URLSearchParams({ refresh: `${address}/private/`, access_token: String(old.access_token) });
      expect((await visitor.visit(`${address}/private/callback?${query}`)).page.body).toBe(PRIVATE_PAGE);
      await until('the changed group is known', async () => {
        await open(visitor);
        const { userinfo, access_token } = await info(visitor);
        const { groups } = userinfo as { readonly groups?: unknown };
        return access_token !== old.access_token && JSON.stringify(groups) === JSON.stringify([group]);
      });
    }

    // The first: sign-outs of the other tests come with notices, too.
    it('given a sign-out at grantry alone → the session at Apache ends, by back-channel', async () => {
      const [visitor, bystander] = [new Visitor(provider), new Visitor(provider)];
      await open(visitor);
      await open(bystander);
      await visitor.signOut();
      // A request that it serves meanwhile would write the session again.
      await until('Apache has its notice', () =>
        apache.output.includes('POST /private/callback?logout=backchannel 200'),
      );
      await open(visitor);
      await open(bystander);
      expect([visitor.signIns, bystander.signIns]).toEqual([2, 1]);
    });

    it('given a sign-in → name, address and groups, and a changed group after a refresh; signed out → asked again', async () => {
      const visitor = new Visitor(provider);
      expect((await open(visitor)).body).toBe(PRIVATE_PAGE);
      expect((await open(visitor, 'auditors')).status).toBe(401);
      const { name, email, groups } = PERSON;
      const claims = { name, email, groups };
      expect(await info(visitor)).toMatchObject({ userinfo: claims, id_token: { ...claims, aud: 'intranet.apache' } });
      await refresh(visitor, 'auditors');
      expect((await open(visitor, 'auditors')).status).toBe(200);
      expect(visitor.signIns).toBe(1);

      const logout = new URLSearchParams({ logout: `${address}/` });
      const { page } = await visitor.visit(`${address}/private/callback?${logout}`);
      expect(page.body).toBe('page for everyone');
      await open(visitor);
      expect(visitor.signIns).toBe(2);
    });

    it('given new signing keys → a refresh, and a sign-in', async () => {
      const [visitor, another] = [new Visitor(provider), new Visitor(provider)];
      await open(visitor);
      await provider.rotateSigningKey();
      await refresh(visitor, 'night-shift');
      expect(visitor.signIns).toBe(1);
      expect((await open(another)).body).toBe(PRIVATE_PAGE);
    });
  }),
);

/** A page for everyone, and two that name the person: in the folder of the example, and in one for a group. */
function serverWithPages(folder: string, port: number): string {
  const pages = join(folder, 'pages');
  for (const name of ['private', 'auditors']) {
    mkdirSync(join(pages, name), { recursive: true });
    writeFileSync(join(pages, name, 'index.html'), `page of ${name} for <!--#echo var="OIDC_CLAIM_name" -->`);
  }
  writeFileSync(join(pages, 'index.html'), 'page for everyone');
  const modules = MODULES.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`);
  return `
${modules.join('\n')}
ServerName 127.0.0.1
Listen 127.0.0.1:${port}
PidFile ${folder}/pid
DefaultRuntimeDir ${folder}
ErrorLog "|/bin/cat"
CustomLog "|/bin/cat" "%m %U%q %>s"
User www-data
Group www-data
DocumentRoot ${pages}
DirectoryIndex index.html
<Location />
  Options +Includes
  SetOutputFilter INCLUDES
  Require all granted
</Location>
`;
}

/** What the test reads the session by; and claims older than a second are read again at the next request. */
const HERE = `
OIDCInfoHook access_token userinfo id_token
OIDCUserInfoRefreshInterval 1
<Location /auditors>
  AuthType openid-connect
  Require claim groups:auditors
</Location>
`;
