// grantry with the client of an example, at the addresses of a test.

import { type Addresses, EXAMPLE_ISSUER, type ExampleClient, Examples } from './examples.ts';
import { type ProviderWishes, startGrantryProvider } from './grantry-provider.ts';
import type { Consumer, Provider } from './provider.ts';

export interface ExampleProviderWishes extends Pick<ProviderWishes, 'port' | 'identityProviders'> {
  /** The folder in `examples/consumers/`. */
  readonly program: string;
  /** All but that of the issuer. */
  readonly addresses: Addresses;
  /** Members of `spec` in place of those of the manifest. */
  readonly spec?: Readonly<Record<string, unknown>>;
  /** More clients, without an example. */
  readonly consumers?: readonly Consumer[];
}

export interface ExampleProvider {
  readonly provider: Provider;
  /** The data of the client's Secret. */
  readonly secret: ExampleClient['secret'];
  /** The text of a file of the program's example, with the addresses of the test. */
  file(name: string): string;
}

/** Starts it on free ports. */
export async function startExampleProvider(wishes: ExampleProviderWishes): Promise<ExampleProvider> {
  const { program, addresses, spec = {}, consumers = [], port, identityProviders } = wishes;
  const examples = new Examples();
  const addressesFor = (issuer: string): Addresses => ({ ...addresses, [EXAMPLE_ISSUER]: issuer });
  let example: ExampleClient | undefined;
  const provider = await startGrantryProvider({
    consumers,
    ...(port !== undefined && { port }),
    ...(identityProviders !== undefined && { identityProviders }),
    clients: async (issuer) => {
      example = await examples.client(program, { addresses: addressesFor(issuer), spec });
      return [example.client];
    },
  });
  return {
    provider,
    secret: example?.secret ?? {},
    file: (name) => examples.file(`${program}/${name}`, addressesFor(provider.issuer)),
  };
}
