// oauth2-proxy with the arguments of its example, in front of a page: what it learns of the person, a refresh, and a sign-out
// that ends the session at grantry.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { freePort } from '../free-port.ts';
import { until } from '../until.ts';
import { type Addresses, EXAMPLE_ISSUER, type ExampleClient, Examples } from './setup/examples.ts';
import { startGrantryProvider } from './setup/grantry-provider.ts';
import { describeConsumers } from './setup/programs.ts';
import { ALGORITHMS, PERSON, type Provider } from './setup/provider.ts';
import { ServedProgram } from './setup/served-program.ts';
import { Visitor } from './setup/visitor.ts';

/** What differs where no cluster and no TLS is. */
const HERE = {
  '--upstream': 'static://200',
  '--cookie-secure': 'false',
  // Older sessions are refreshed at the next request.
  '--cookie-refresh': '1s',
};

await describeConsumers(['oauth2-proxy'], (program) =>
  describe.each(ALGORITHMS)('with ID tokens by %s', (algorithm) => {
    const proxy = new ServedProgram();
    const examples = new Examples();
    let address: string;
    let provider: Provider;

    beforeAll(async () => {
      const port = await freePort();
      address = `http://127.0.0.1:${port}`;
      let example: ExampleClient | undefined;
      const addressesFor = (issuer: string) => ({ 'https://wiki.example.com': address, [EXAMPLE_ISSUER]: issuer });
      provider = await startGrantryProvider({
        clients: async (issuer) => {
          const spec = { tokens: { idTokenSigningAlgorithm: algorithm } };
          example = await examples.client('oauth2-proxy', { addresses: addressesFor(issuer), spec });
          return [example.client];
        },
      });
      const { args, env } = containerOf(examples, addressesFor(provider.issuer), example?.secret ?? {});
      const here = Object.entries({ ...HERE, '--http-address': `127.0.0.1:${port}` });
      const kept = args.filter((argument) => !here.some(([name]) => argument.startsWith(`${name}=`)));
      const words = [...kept, ...here.map(([name, value]) => `${name}=${value}`)];
      await proxy.start(program, { words, address: `${address}/ping`, environment: env });
    });
    afterAll(async () => {
      await Promise.all([proxy.stop(), provider?.stop()]);
    });

    const learned = (visitor: Visitor) => visitor.json(`${address}/oauth2/userinfo`);

    it('given a sign-in → name, address and groups; a changed group after a refresh; signed out → asked again', async () => {
      const visitor = new Visitor(provider);
      expect((await visitor.visit(`${address}/`)).page.status).toBe(200);
      const { username, email, groups } = PERSON;
      expect(await learned(visitor)).toMatchObject({ preferredUsername: username, email, groups });

      provider.setGroups(['auditors']);
      await until('the changed group is known', async () => {
        const { groups: now } = await learned(visitor);
        return JSON.stringify(now) === '["auditors"]';
      });
      expect(visitor.signIns).toBe(1);

      // Out at the proxy, which itself ends the session at grantry.
      await visitor.visit(`${address}/oauth2/sign_out`);
      await visitor.visit(`${address}/`);
      expect(visitor.signIns).toBe(2);
    });

    it('given new signing keys → a refresh, and a sign-in', async () => {
      const visitor = new Visitor(provider);
      await visitor.visit(`${address}/`);
      await provider.rotateSigningKey();
      provider.setGroups(['night-shift']);
      await until('the changed group is known', async () => {
        const { groups: now } = await learned(visitor);
        return JSON.stringify(now) === '["night-shift"]';
      });
      expect(visitor.signIns).toBe(1);
      const another = new Visitor(provider);
      await another.visit(`${address}/`);
      expect(await learned(another)).toMatchObject({ groups: ['night-shift'] });
    });
  }),
);

interface Variable {
  readonly name: string;
  readonly valueFrom: { readonly secretKeyRef: { readonly key: string } };
}

/** Its arguments and its environment, as the kubelet makes them. */
function containerOf(examples: Examples, addresses: Addresses, secret: Readonly<Record<string, string>>) {
  const { spec } = parse(examples.file('oauth2-proxy/oauth2-proxy.yaml', addresses)) as {
    readonly spec: {
      readonly template: {
        readonly spec: {
          readonly containers: readonly [{ readonly args: readonly string[]; readonly env: readonly Variable[] }];
        };
      };
    };
  };
  const [{ args, env }] = spec.template.spec.containers;
  return {
    args,
    env: Object.fromEntries(env.map(({ name, valueFrom }) => [name, secret[valueFrom.secretKeyRef.key] ?? ''])),
  };
}
