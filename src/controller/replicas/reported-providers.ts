// What the replicas reported of IdentityProviders, as of the latest poll: replica-reports.ts writes it, the controller of
// identity providers reads it.

/** What one replica holds of one provider, and whether it reaches it. */
export interface ReportedProvider {
  readonly generation: number;
  readonly reachable: boolean;
  /** `Reachable`, `DiscoveryFailed`, `IssuerMismatch`, `NotObserved`, or a word of a newer version. */
  readonly reason: string;
  /** Whether lately a person signed in without groups, because they were too many for the provider's answer. */
  readonly isOverage?: boolean | undefined;
}

/** The report of one replica. */
export interface ReplicaProviders {
  /** Of the replica, for messages. */
  readonly name: string;
  /** By uid; undefined where it did not answer. */
  readonly providers: ReadonlyMap<string, ReportedProvider> | undefined;
}

/** What the replicas that take requests reported; `NotObserved` where no addresses of replicas are configured. */
export type ProviderReports = readonly ReplicaProviders[] | 'NotObserved';

export class ReportedProviders {
  #latest: ProviderReports | undefined;
  readonly #listeners = new Set<() => void>();
  /** Ends the wait for the next poll. */
  #hurry: () => void = () => {};

  /** Undefined before the first poll. */
  get latest(): ProviderReports | undefined {
    return this.#latest;
  }

  /** To be called after each poll. */
  polled(reports: ProviderReports): void {
    this.#latest = reports;
    for (const listener of this.#listeners) listener();
  }

  /** Calls the listener after each poll. @returns a function that ends this */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Has the replicas polled soon, and not only when the period is over. */
  pollSoon(): void {
    this.#hurry();
  }

  /** @param hurry called by {@link pollSoon} */
  onHurry(hurry: () => void): void {
    this.#hurry = hurry;
  }
}
