// go-oidc, and the requests of Grafana's generic OAuth, which are those of x/oauth2 with the addresses of its settings.

import { decodeProtectedHeader } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../free-port.ts';
import { startGrantryProvider } from './setup/grantry-provider.ts';
import { describeConsumers } from './setup/programs.ts';
import { ALGORITHMS, PERSON, type Provider } from './setup/provider.ts';
import { ServedProgram } from './setup/served-program.ts';
import { Visitor } from './setup/visitor.ts';

const CLIENT = { clientId: 'shop.web', secret: 'a-secret-of-more-than-thirty-two-bytes' };

await describeConsumers(['go-oidc'], (program) =>
  describe.each(ALGORITHMS)('with ID tokens by %s', (algorithm) => {
    const started = { discovered: new ServedProgram(), grafana: new ServedProgram() };
    const addresses = { discovered: '', grafana: '' };
    let provider: Provider;

    beforeAll(async () => {
      const ports = { discovered: await freePort(), grafana: await freePort() };
      const names = ['discovered', 'grafana'] as const;
      const clientIds = { discovered: 'shop.web', grafana: 'shop.grafana' };
      provider = await startGrantryProvider({
        consumers: names.map((name) => ({
          ...CLIENT,
          algorithm,
          clientId: clientIds[name],
          redirectUri: `http://127.0.0.1:${ports[name]}/callback`,
        })),
      });
      const { authorization, token, userinfo } = provider.endpoints;
      const settings = {
        discovered: ['-issuer', provider.issuer],
        grafana: ['-auth-url', authorization, '-token-url', token, '-api-url', userinfo],
      };
      for (const name of names) {
        addresses[name] = `http://127.0.0.1:${ports[name]}`;
        const client = ['-client-id', clientIds[name], '-client-secret', CLIENT.secret];
        const listen = ['-listen', `127.0.0.1:${ports[name]}`];
        const words = [...listen, ...client, ...settings[name]];
        await started[name].start(program, { words, address: addresses[name] });
      }
    });
    afterAll(async () => {
      await Promise.all([...Object.values(started).map((one) => one.stop()), provider?.stop()]);
    });

    it.each(['discovered', 'grafana'] as const)(
      'given settings that are %s → name, address and groups, and a changed group after a refresh',
      async (name) => {
        provider.setGroups(PERSON.groups);
        const visitor = new Visitor(provider);
        const { username, groups, ...told } = PERSON;
        const signedIn = await visitor.json(`${addresses[name]}/login`);
        expect(visitor.signIns).toBe(1);
        const claims = { ...told, preferred_username: username, email_verified: true };
        expect(signedIn).toMatchObject({ userinfo: { ...claims, groups }, idToken: expect.any(String) });
        expect(decodeProtectedHeader(String(signedIn.idToken))).toMatchObject({ alg: algorithm });
        if (name === 'discovered') expect(signedIn).toMatchObject({ claims: { ...claims, groups, aud: 'shop.web' } });

        provider.setGroups(['auditors']);
        expect(await visitor.json(`${addresses[name]}/refresh`)).toMatchObject({ userinfo: { groups: ['auditors'] } });
      },
    );
  }),
);
