// go-oidc, and the requests that Grafana's generic OAuth documents: not Grafana itself, but those requests by x/oauth2 with the
// variables that grantry writes for Grafana.

import { decodeProtectedHeader } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { freePort } from '../free-port.ts';
import { type ExampleProvider, startExampleProvider } from './setup/example-provider.ts';
import { describeConsumers } from './setup/programs.ts';
import { ALGORITHMS, PERSON, type Provider } from './setup/provider.ts';
import { ServedProgram } from './setup/served-program.ts';
import { Visitor } from './setup/visitor.ts';

const CLIENT = { clientId: 'shop.web', secret: 'a-secret-of-more-than-thirty-two-bytes' };

await describeConsumers(['go-oidc'], (program) =>
  describe.each(ALGORITHMS)('with ID tokens by %s', (algorithm) => {
    const started = { discovered: new ServedProgram(), grafana: new ServedProgram() };
    const addresses = { discovered: '', grafana: '' };
    let example: ExampleProvider;
    let provider: Provider;

    beforeAll(async () => {
      const ports = { discovered: await freePort(), grafana: await freePort() };
      for (const name of ['discovered', 'grafana'] as const) addresses[name] = `http://127.0.0.1:${ports[name]}`;
      example = await startExampleProvider({
        program: 'grafana',
        // One is in a query.
        addresses: {
          'https://grafana.example.com': addresses.grafana,
          'https%3A%2F%2Fgrafana.example.com': encodeURIComponent(addresses.grafana),
        },
        spec: { tokens: { idTokenSigningAlgorithm: algorithm } },
        consumers: [{ ...CLIENT, algorithm, redirectUri: `${addresses.discovered}/callback` }],
      });
      ({ provider } = example);
      const client = ['-issuer', provider.issuer, '-client-id', CLIENT.clientId, '-client-secret', CLIENT.secret];
      await Promise.all([
        started.discovered.start(program, {
          words: ['-listen', `127.0.0.1:${ports.discovered}`, ...client],
          address: addresses.discovered,
        }),
        started.grafana.start(program, {
          words: ['-listen', `127.0.0.1:${ports.grafana}`],
          address: addresses.grafana,
          environment: example.secret,
        }),
      ]);
    });
    afterAll(async () => {
      await Promise.all([...Object.values(started).map((one) => one.stop()), provider?.stop()]);
    });
    beforeEach(() => provider.setGroups(PERSON.groups));

    it.each(['discovered', 'grafana'] as const)(
      'given settings that are %s → name, address and groups, and a changed group after a refresh; signed out → asked again',
      async (name) => {
        const visitor = new Visitor(provider);
        const { username, groups, ...told } = PERSON;
        const signedIn = await visitor.json(`${addresses[name]}/login`);
        expect(visitor.signIns).toBe(1);
        const claims = { ...told, groups, preferred_username: username, email_verified: true };
        expect(signedIn).toMatchObject({ userinfo: claims, idToken: expect.any(String) });
        expect(decodeProtectedHeader(String(signedIn.idToken))).toMatchObject({ alg: algorithm });
        if (name === 'discovered') expect(signedIn).toMatchObject({ claims: { ...claims, aud: CLIENT.clientId } });

        provider.setGroups(['auditors']);
        expect(await visitor.json(`${addresses[name]}/refresh`)).toMatchObject({ userinfo: { groups: ['auditors'] } });

        const { url } = await visitor.visit(`${addresses[name]}/logout`);
        // Grafana's client has an address to come back to, which begins a sign-in here.
        expect(url.origin).toBe(name === 'grafana' ? addresses.grafana : provider.issuer);
        await visitor.json(`${addresses[name]}/login`);
        expect(visitor.signIns).toBe(2);
      },
    );

    it.each(['discovered', 'grafana'] as const)(
      'given new signing keys, and settings that are %s → a refresh, and a sign-in',
      async (name) => {
        const visitor = new Visitor(provider);
        await visitor.json(`${addresses[name]}/login`);
        await provider.rotateSigningKey();
        provider.setGroups(['night-shift']);
        const told = { userinfo: { groups: ['night-shift'] } };
        expect(await visitor.json(`${addresses[name]}/refresh`)).toMatchObject(told);
        expect(await visitor.json(`${addresses[name]}/login`)).toMatchObject(told);
        expect(visitor.signIns).toBe(1);
      },
    );

    it('given the settings of Grafana → each claim that they name is in what userinfo answers', async () => {
      const { 'grafana.ini': settings } = parse(example.file('grafana.yaml')) as {
        readonly 'grafana.ini': Readonly<Record<string, Readonly<Record<string, unknown>>>>;
      };
      const { login_attribute_path, groups_attribute_path } = settings['auth.generic_oauth'] ?? {};
      const { userinfo } = await new Visitor(provider).json(`${addresses.grafana}/login`);
      const { username, groups } = PERSON;
      expect(userinfo).toMatchObject({
        [String(login_attribute_path)]: username,
        [String(groups_attribute_path)]: groups,
      });
    });
  }),
);
