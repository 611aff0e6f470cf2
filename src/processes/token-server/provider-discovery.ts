// The discovery of identity providers in the background, from the start of a server to its end.

import type { IdentityProviders } from '../../login/upstream/identity-providers.ts';

/** Also how late a provider is discovered after its manifest was applied; milliseconds. */
const EVERY = 1000;

export class ProviderDiscovery {
  readonly #providers: IdentityProviders;
  #timer: NodeJS.Timeout | undefined;

  constructor(providers: IdentityProviders) {
    this.#providers = providers;
  }

  /** Discovers now, and whenever the time of a provider has come. */
  start(): void {
    this.#providers.discover();
    this.#timer = setInterval(() => this.#providers.discover(), EVERY);
    this.#timer.unref();
  }

  /** Ends it, and closes all connections to providers. */
  stop(): void {
    clearInterval(this.#timer);
    this.#providers.close();
  }
}
