// oauth2-proxy with the arguments of its example, in front of a page: what it learns of the person, a refresh, and a sign-out
// that ends the session at grantry.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { decodeJwt, decodeProtectedHeader } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { freePort } from '../free-port.ts';
import { until } from '../until.ts';
import { startExampleProvider } from './setup/example-provider.ts';
import { describeConsumers } from './setup/programs.ts';
import { ALGORITHMS, PERSON, type Provider } from './setup/provider.ts';
import { ServedProgram } from './setup/served-program.ts';
import { Visitor } from './setup/visitor.ts';

/** What differs where no cluster and no TLS is. */
const HERE = {
  '--cookie-secure': 'false',
  // The upstream gets the ID token, too.
  '--pass-authorization-header': 'true',
  // Older sessions are refreshed at the next request.
  '--cookie-refresh': '1s',
};

await describeConsumers(['oauth2-proxy'], (program) =>
  describe.each(ALGORITHMS)('with ID tokens by %s', (algorithm) => {
    const proxy = new ServedProgram();
    const upstream = createServer(({ headers }, answer) => {
      answer.setHeader('content-type', 'application/json').end(JSON.stringify(headers));
    });
    let address: string;
    let provider: Provider;

    beforeAll(async () => {
      const port = await freePort();
      address = `http://127.0.0.1:${port}`;
      upstream.listen(0, '127.0.0.1');
      await once(upstream, 'listening');
      const { port: upstreamPort } = upstream.address() as AddressInfo;
      const example = await startExampleProvider({
        program: 'oauth2-proxy',
        addresses: { 'https://wiki.example.com': address, 'http://wiki': `http://127.0.0.1:${upstreamPort}` },
        spec: { tokens: { idTokenSigningAlgorithm: algorithm } },
      });
      provider = example.provider;
      const { args, env } = containerOf(example.file('oauth2-proxy.yaml'), example.secret);
      const here = Object.entries({ ...HERE, '--http-address': `127.0.0.1:${port}` });
      const kept = args.filter((argument) => !here.some(([name]) => argument.startsWith(`${name}=`)));
      const words = [...kept, ...here.map(([name, value]) => `${name}=${value}`)];
      await proxy.start(program, { words, address: `${address}/ping`, environment: env });
    });
    afterAll(async () => {
      upstream.close();
      await Promise.all([proxy.stop(), provider?.stop()]);
    });

    /** The headers of a request, as the upstream has it. */
    const handedOn = (visitor: Visitor) => visitor.json(`${address}/`);

    async function untilGroup(visitor: Visitor, group: string): Promise<void> {
      await until('the changed group is known', async () => {
        const { 'x-forwarded-groups': groups } = await handedOn(visitor);
        return groups === group;
      });
      expect(visitor.signIns).toBe(1);
    }

    it('given a sign-in → name, address and groups; a changed group after a refresh; signed out → asked again', async () => {
      const visitor = new Visitor(provider);
      const { username, name, email, groups } = PERSON;
      const headers = await handedOn(visitor);
      expect(headers).toMatchObject({
        'x-forwarded-preferred-username': username,
        'x-forwarded-email': email,
        'x-forwarded-groups': groups.join(','),
      });
      const idToken = String(headers.authorization).replace('Bearer ', '');
      expect(decodeProtectedHeader(idToken)).toMatchObject({ alg: algorithm });
      expect(decodeJwt(idToken)).toMatchObject({ name, email, groups });

      provider.setGroups(['auditors']);
      await untilGroup(visitor, 'auditors');

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
      await untilGroup(visitor, 'night-shift');
      expect(await handedOn(new Visitor(provider))).toMatchObject({ 'x-forwarded-groups': 'night-shift' });
    });
  }),
);

interface Variable {
  readonly name: string;
  readonly valueFrom: { readonly secretKeyRef: { readonly key: string } };
}

interface Deployment {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly containers: readonly [{ readonly args: readonly string[]; readonly env: readonly Variable[] }];
      };
    };
  };
}

/** Its arguments and its environment, as the kubelet makes them. */
function containerOf(deployment: string, secret: Readonly<Record<string, string>>) {
  const [{ args, env }] = (parse(deployment) as Deployment).spec.template.spec.containers;
  return {
    args,
    env: Object.fromEntries(env.map(({ name, valueFrom }) => [name, secret[valueFrom.secretKeyRef.key] ?? ''])),
  };
}
