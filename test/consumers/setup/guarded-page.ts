// oauth2-proxy with the arguments of its example, in front of a page that answers with the headers it got, and grantry behind it.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parse } from 'yaml';
import { freePort } from '../../free-port.ts';
import { type ExampleProviderWishes, startExampleProvider } from './example-provider.ts';
import type { Provider } from './provider.ts';
import { ServedProgram } from './served-program.ts';
import type { Visitor } from './visitor.ts';

/** What differs where no cluster and no TLS is. */
const HERE = {
  '--cookie-secure': 'false',
  // The page gets the ID token, too.
  '--pass-authorization-header': 'true',
  // Older sessions are refreshed at the next request.
  '--cookie-refresh': '1s',
};

export class GuardedPage {
  /** Of the proxy. */
  readonly address: string;
  readonly provider: Provider;
  readonly #proxy: ServedProgram;
  readonly #page: ReturnType<typeof createServer>;

  private constructor(
    { address, provider }: { readonly address: string; readonly provider: Provider },
    parts: { readonly proxy: ServedProgram; readonly page: ReturnType<typeof createServer> },
  ) {
    this.address = address;
    this.provider = provider;
    this.#proxy = parts.proxy;
    this.#page = parts.page;
  }

  /** Starts all three. @param program what the proxy is started by */
  static async start(
    program: string,
    wishes: Omit<ExampleProviderWishes, 'program' | 'addresses'>,
  ): Promise<GuardedPage> {
    const port = await freePort();
    const address = `http://127.0.0.1:${port}`;
    const page = createServer(({ headers }, answer) => {
      answer.setHeader('content-type', 'application/json').end(JSON.stringify(headers));
    });
    page.listen(0, '127.0.0.1');
    await once(page, 'listening');
    const { port: pagePort } = page.address() as AddressInfo;
    const addresses = { 'https://wiki.example.com': address, 'http://wiki': `http://127.0.0.1:${pagePort}` };
    const { provider, secret, file } = await startExampleProvider({ ...wishes, program: 'oauth2-proxy', addresses });
    const { args, env } = containerOf(file('oauth2-proxy.yaml'), secret);
    const here = Object.entries({ ...HERE, '--http-address': `127.0.0.1:${port}` });
    const kept = args.filter((argument) => !here.some(([name]) => argument.startsWith(`${name}=`)));
    const words = [...kept, ...here.map(([name, value]) => `${name}=${value}`)];
    const proxy = new ServedProgram();
    await proxy.start(program, { words, address: `${address}/ping`, environment: env });
    return new GuardedPage({ address, provider }, { proxy, page });
  }

  /** The headers of a request of the visitor, as the page has it. */
  handedOn(visitor: Visitor): Promise<Record<string, unknown>> {
    return visitor.json(`${this.address}/`);
  }

  async stop(): Promise<void> {
    this.#page.close();
    await Promise.all([this.#proxy.stop(), this.provider.stop()]);
  }
}

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
