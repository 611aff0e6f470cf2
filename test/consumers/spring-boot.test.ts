// Spring Boot 4 with nothing but issuer-uri, id, secret and scopes: sign-in, sign-out at the issuer, and back-channel logout.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { freePort } from '../free-port.ts';
import { until } from '../until.ts';
import { startGrantryProvider } from './setup/grantry-provider.ts';
import { describeConsumers } from './setup/programs.ts';
import { PERSON, type Provider } from './setup/provider.ts';
import { ServedProgram } from './setup/served-program.ts';
import { Visitor } from './setup/visitor.ts';

const CLIENT = { clientId: 'shop.web', secret: 'a-secret-of-more-than-thirty-two-bytes' };

await describeConsumers(['spring-boot'], (classPath) => {
  const application = new ServedProgram();
  let address: string;
  let provider: Provider;

  beforeAll(async () => {
    const port = await freePort();
    address = `http://127.0.0.1:${port}`;
    provider = await startGrantryProvider({
      consumers: [
        {
          ...CLIENT,
          redirectUri: `${address}/login/oauth2/code/grantry`,
          postLogoutRedirectUri: `${address}/`,
          // Spring takes one that lives no minute more for expired.
          accessTokenLifetime: 60,
          backchannelLogoutUri: `${address}/logout/connect/back-channel/grantry`,
        },
      ],
    });
    const settings = {
      'server.address': '127.0.0.1',
      'server.port': `${port}`,
      'spring.security.oauth2.client.provider.grantry.issuer-uri': provider.issuer,
      'spring.security.oauth2.client.registration.grantry.client-id': CLIENT.clientId,
      'spring.security.oauth2.client.registration.grantry.client-secret': CLIENT.secret,
      'spring.security.oauth2.client.registration.grantry.scope': 'openid,profile,email,groups',
    };
    const words = Object.entries(settings).map(([name, value]) => `--${name}=${value}`);
    const quick = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'];
    await application.start('java', {
      words: [...quick, '-cp', classPath, 'dev.grantry.consumer.Application', ...words],
      address,
    });
  });
  afterAll(async () => {
    await Promise.all([application.stop(), provider?.stop()]);
  });

  it('given a sign-in → name, address and groups, and a changed group after a refresh; signed out → asked again', async () => {
    const visitor = new Visitor(provider);
    const { claims, csrf } = await visitor.json(`${address}/`);
    const { name, email, groups } = PERSON;
    expect(claims).toMatchObject({ aud: [CLIENT.clientId], name, email, groups });
    await visitor.json(`${address}/`);

    provider.setGroups(['auditors']);
    await visitor.visit(`${address}/refresh`);
    expect(await visitor.json(`${address}/`)).toMatchObject({ claims: { groups: ['auditors'] } });
    expect(visitor.signIns).toBe(1);

    // It goes to the issuer and comes back to a page that needs a sign-in.
    await visitor.submit({ action: `${address}/logout`, fields: { _csrf: String(csrf) } });
    expect(visitor.signIns).toBe(2);
  });

  it('given a sign-out at the issuer alone → the session at the application ends, by back-channel', async () => {
    const visitor = new Visitor(provider);
    await visitor.json(`${address}/`);
    await visitor.visit(provider.endpoints.endSession);
    await until('the application asks for a sign-in', async () => {
      await visitor.json(`${address}/`);
      return visitor.signIns === 2;
    });
  });
});
