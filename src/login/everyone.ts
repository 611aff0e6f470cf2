// Everyone who can sign in: the local users, and the people of identity providers.

import type { AssertedRecord, PersonStore } from '../oauth/ports/person-store.ts';
import type { Clock, NamedPerson, People, Person, ResourceOwner } from '../oauth/ports/ports.ts';
import type { AssertedPerson } from '../oauth/ports/upstream-provider.ts';
import type { IdentityProvider } from '../oauth/registry/identity-provider.ts';
import { issuerOf } from '../oauth/registry/upstream-providers.ts';
import type { BlockedPeople } from './blocked-people.ts';

export interface EveryoneOptions {
  /** The local users. */
  readonly users: People;
  readonly persons: PersonStore;
  readonly providers: Providers;
  readonly clock: Clock;
  /** The people of providers that are blocked one by one. */
  readonly blocked: Pick<BlockedPeople, 'revokedBefore'>;
}

/** The providers of now. */
export interface Providers {
  /** Suspended ones too; undefined where there is none of this name. */
  provider(name: string): IdentityProvider | undefined;
  readonly count: number;
}

export class Everyone implements People {
  readonly #users: People;
  readonly #persons: PersonStore;
  readonly #providers: Providers;
  readonly #clock: Clock;
  readonly #blocked: EveryoneOptions['blocked'];

  constructor({ users, persons, providers, clock, blocked }: EveryoneOptions) {
    this.#users = users;
    this.#persons = persons;
    this.#providers = providers;
    this.#clock = clock;
    this.#blocked = blocked;
  }

  get takesPasswords(): boolean {
    return this.#users.takesPasswords;
  }

  lookUp(username: string): Promise<NamedPerson | undefined> {
    return this.#users.lookUp(username);
  }

  authenticate(username: string, password: string): Promise<ResourceOwner | undefined> {
    return this.#users.authenticate(username, password);
  }

  async find(subject: string): Promise<Person | undefined> {
    // A request about a local user reads no store. No subject is that of a local user and that of a provider.
    const user = await this.#users.find(subject);
    if (user !== undefined || this.#providers.count === 0) return user;
    const record = await this.#persons.read(subject);
    return record && this.#current(record);
  }

  revokedBefore(person: Person): number {
    if (person.provider === undefined) return this.#users.revokedBefore(person);
    const { name, issuer, type, verifiedAt } = person.provider;
    const now = this.#clock.now();
    const provider = this.#providers.provider(name);
    if (provider === undefined || provider.isSuspended) return Number.POSITIVE_INFINITY;
    // A provider of the same name that is another party has asserted none of these people.
    if (provider.type !== type || issuerOf(provider) !== issuer) return Number.POSITIVE_INFINITY;
    if (now >= verifiedAt + provider.verifyEvery) return Number.POSITIVE_INFINITY;
    const revokedBefore = Math.max(provider.revokedBefore ?? 0, this.#blocked.revokedBefore(person));
    return revokedBefore > now ? Number.POSITIVE_INFINITY : revokedBefore;
  }

  /**
   * Records what a provider asserts of a person now.
   * @returns as {@link find}, of the new record: another sign-in at the same time may replace it before it can be read
   * @throws StoreUnavailableError
   */
  async remember(asserted: AssertedPerson, provider: IdentityProvider): Promise<Person | undefined> {
    const { subject, username, displayName, email, unverifiedEmail, groups } = asserted;
    const { name, type, verifyEvery } = provider;
    const by = { provider: name, issuer: issuerOf(provider), type };
    const record = { subject, ...by, username, displayName, email, unverifiedEmail, groups };
    return this.#current(await this.#persons.remember(record, verifyEvery));
  }

  #current(record: AssertedRecord): Person | undefined {
    const person = personOf(record);
    return this.revokedBefore(person) === Number.POSITIVE_INFINITY ? undefined : person;
  }
}

function personOf({ subject, username, displayName, email, groups, ...by }: AssertedRecord): Person {
  const { provider: name, issuer, type, unverifiedEmail, verifiedAt } = by;
  const provider = { name, issuer, type, unverifiedEmail, verifiedAt };
  return { subject, username, displayName, email, groups, provider };
}
