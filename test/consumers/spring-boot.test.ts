// Spring Boot 4 with the settings of its example, nothing but issuer-uri, id, secret and scopes: sign-in, a refresh, sign-out at
// the issuer, and back-channel logout. Once more with access tokens for an API, which are not for userinfo: then the claims are
// those of the sign-in.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { freePort } from '../free-port.ts';
import { until } from '../until.ts';
import { type ExampleProvider, startExampleProvider } from './setup/example-provider.ts';
import { describeConsumers } from './setup/programs.ts';
import { PERSON, type Provider } from './setup/provider.ts';
import { ServedProgram } from './setup/served-program.ts';
import { Visitor } from './setup/visitor.ts';

const EXAMPLE = 'https://storefront.example.com';
/** Spring takes an access token that lives no minute more for expired. */
const SHORT = { tokens: { accessTokenLifetime: '60s' } };
const API = 'https://orders.example';
const QUICK = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'];

await describeConsumers(['spring-boot'], (classPath) => {
  const cases = [
    { title: 'with what its example sets', spec: SHORT, settings: {}, api: undefined },
    {
      title: 'with an API as the audience, and not asking for userinfo',
      spec: {
        ...SHORT,
        scopes: ['openid', 'profile', 'email', 'groups', 'shop/orders.read'],
        audiences: [API],
      },
      settings: {
        'spring.security.oauth2.client.registration.grantry.scope': 'openid,profile,email,groups,shop/orders.read',
        'consumer.userinfo': 'false',
      },
      api: API,
    },
  ];
  describe.each(cases)('$title', ({ spec, settings, api }) => {
    const application = new ServedProgram();
    let address: string;
    let provider: Provider;

    beforeAll(async () => {
      const port = await freePort();
      address = `http://127.0.0.1:${port}`;
      const example = await startExampleProvider({ program: 'spring-boot', addresses: { [EXAMPLE]: address }, spec });
      ({ provider } = example);
      const words = Object.entries({
        'server.address': '127.0.0.1',
        'server.port': `${port}`,
        'spring.config.location': writeSettings(application.folder, example),
        ...settings,
      }).map(([name, value]) => `--${name}=${value}`);
      await application.start('java', {
        words: [...QUICK, '-cp', classPath, 'dev.grantry.consumer.Application', ...words],
        address,
      });
    });
    afterAll(async () => {
      await Promise.all([application.stop(), provider?.stop()]);
    });
    beforeEach(() => provider.setGroups(PERSON.groups));

    /** Has a token refreshed once the person is in another group, which the claims then have. */
    async function refresh(visitor: Visitor, group: string): Promise<void> {
      provider.setGroups([group]);
      const tokens = [];
      for (const _ of [1, 2]) tokens.push((await visitor.visit(`${address}/refresh`)).page.body);
      expect(tokens[0]).not.toBe(tokens[1]);
      expect(decodeJwt(String(tokens[1])).aud).toBe(api ?? provider.issuer);
      const { claims } = await visitor.json(`${address}/`);
      // Spring reads no ID token of an answer whose scope, that of the access token, lacks openid.
      expect(claims).toMatchObject({ groups: api === undefined ? [group] : PERSON.groups });
    }

    it('given a sign-in → name, address and groups, and a changed group after a refresh; signed out → asked again', async () => {
      const visitor = new Visitor(provider);
      const { claims, csrf } = await visitor.json(`${address}/`);
      const { name, email, groups } = PERSON;
      expect(claims).toMatchObject({ aud: ['shop.storefront'], name, email, groups });
      await refresh(visitor, 'auditors');
      expect(visitor.signIns).toBe(1);

      // It goes to the issuer and comes back to a page that needs a sign-in.
      await visitor.submit({ action: `${address}/logout`, fields: { _csrf: String(csrf) } });
      expect(visitor.signIns).toBe(2);
    });

    it('given a sign-out at grantry alone → the session at the application ends, by back-channel', async () => {
      const [visitor, bystander] = [new Visitor(provider), new Visitor(provider)];
      await visitor.json(`${address}/`);
      await bystander.json(`${address}/`);
      await visitor.signOut();
      await until('the application asks for a sign-in', async () => {
        await visitor.json(`${address}/`);
        return visitor.signIns === 2;
      });
      await bystander.json(`${address}/`);
      expect(bystander.signIns).toBe(1);
    });

    it('given new signing keys → a refresh, and a sign-in', async () => {
      const [visitor, another] = [new Visitor(provider), new Visitor(provider)];
      await visitor.json(`${address}/`);
      await provider.rotateSigningKey();
      await refresh(visitor, 'night-shift');
      expect(visitor.signIns).toBe(1);
      expect(await another.json(`${address}/`)).toMatchObject({ claims: { groups: ['night-shift'] } });
    });
  });
});

/** The settings of the example, and the Secret where they look for it. @returns the file with the settings */
function writeSettings(folder: string, { file, secret }: ExampleProvider): string {
  const mounted = join(folder, 'config');
  mkdirSync(join(mounted, 'oauth'), { recursive: true });
  for (const [key, value] of Object.entries(secret)) writeFileSync(join(mounted, 'oauth', key), value);
  const settings = join(folder, 'application.yaml');
  writeFileSync(settings, file('application.yaml').replace('/etc/config/', `${mounted}/`));
  return settings;
}
