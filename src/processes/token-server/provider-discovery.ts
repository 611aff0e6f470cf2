// The discovery of identity providers in the background, from the start of a server to its end.

import type { ProviderClients } from '../../login/upstream/provider-clients.ts';

/** Also how late a provider is discovered after its manifest was applied; milliseconds. */
const EVERY = 1000;

export class ProviderDiscovery {
  readonly #clients: ProviderClients;
  #timer: NodeJS.Timeout | undefined;

  constructor(clients: ProviderClients) {
    this.#clients = clients;
  }

  /** Discovers now, and whenever the time of a provider has come. */
  start(): void {
    this.#clients.discover();
    this.#timer = setInterval(() => this.#clients.discover(), EVERY);
    this.#timer.unref();
  }

  /** Ends it, and closes all connections to providers. */
  stop(): void {
    clearInterval(this.#timer);
    this.#clients.close();
  }
}
