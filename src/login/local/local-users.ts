// The local users of a `users.yaml`: authenticates them by password, and is the kill switch of each. `users-yaml.ts`
// parses the file, `password.ts` verifies passwords, `user-changes.ts` ends what a changed user holds.

import { createHash } from 'node:crypto';
import type { Clock, NamedPerson, People, Person, ResourceOwner } from '../../oauth/ports/ports.ts';
import type { Block } from '../blocks.ts';
import { type HashingLimits, PasswordVerifier } from './password.ts';

export { hashPassword } from './password.ts';

/** One entry of `users.yaml`. */
export interface LocalUser {
  readonly username: string;
  /** Stands for the username in `sub`: a person may be renamed, and a name may be given to another person. */
  readonly id?: string | undefined;
  readonly passwordHash: string;
  readonly displayName?: string | undefined;
  readonly email?: string | undefined;
  readonly groups?: readonly string[] | undefined;
  readonly disabled?: boolean | undefined;
  /** All that the person holds from at or before this time is revoked; epoch milliseconds. */
  readonly revokeTokensBefore?: number | undefined;
}

/** The valid part of a `users.yaml` with a fault: it can only withdraw access. Absent members change no user. */
export interface Denials {
  /** The usernames of entries that disable them, whatever else is wrong. */
  readonly disabled?: ReadonlySet<string>;
  /** By username, the `revokeTokensBefore` of entries; Infinity for one that cannot be read. */
  readonly revoked?: ReadonlyMap<string, number>;
  /** Every username of the file; undefined when one cannot be read, as then no user is known to be gone. */
  readonly named?: ReadonlySet<string> | undefined;
  /** What can be read of the names and ids of users: no other list may have them while this one cannot be read. */
  readonly reserved?: Reserved;
  /** What can be read of the blocks. */
  readonly blocks?: readonly Block[];
}

/** By what a list means its users. */
export interface Reserved {
  readonly usernames: ReadonlySet<string>;
  readonly ids: ReadonlySet<string>;
}

interface FaultyUsers {
  /** The place of the first fault in the list, such as `[1, 'passwordHash']`. Default: the whole list. */
  readonly path?: readonly PropertyKey[] | undefined;
  /** Default: nothing of the file applies. */
  readonly denials?: Denials;
}

/** A `users.yaml` that cannot be used; the message names the entry and the field, and never shows a hash. */
export class UsersFileError extends Error {
  readonly path: readonly PropertyKey[];
  readonly denials: Denials;

  constructor(message: string, { path = [], denials = {} }: FaultyUsers = {}) {
    super(message);
    this.name = 'UsersFileError';
    this.path = path;
    this.denials = denials;
  }
}

/**
 * The `sub` of a local user: `usr_` and 132 bits of SHA-256 over ("local", username) or ("local id", id). The two tags
 * keep an id apart from an equal username. It outlives a change of the pepper and can never equal a client id (those may
 * not begin `usr_`).
 */
export function subjectOf({ username, id }: Pick<LocalUser, 'username' | 'id'>): string {
  return `usr_${digestOf(id === undefined ? `local\0${username}` : `local id\0${id}`)}`;
}

/** 132 bits of SHA-256. */
function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22);
}

/** A user with what is made of the entry once. */
interface Entry {
  readonly user: LocalUser;
  readonly subject: string;
  /** A digest of the password hash, which has a salt. */
  readonly credential: string;
  readonly named: NamedPerson;
  readonly person: Person;
}

function entryOf(user: LocalUser): Entry {
  const subject = subjectOf(user);
  const credential = digestOf(`grantry credential\0${user.passwordHash}`);
  const { username, displayName, email, groups = [] } = user;
  return {
    user,
    subject,
    credential,
    named: { subject, credential: user.disabled ? undefined : credential },
    // The file asserts the addresses in it.
    person: { subject, username, displayName, email, groups: [...new Set(groups)] },
  };
}

/** How well the lists of users were read. */
export interface UsersReading {
  /** See {@link LocalUsers.isWhole}. */
  readonly isWhole?: boolean;
  readonly outdated?: ReadonlySet<string>;
}

const NONE: ReadonlySet<string> = new Set();

/** One consistent set of users, replaced as a whole; disabled people too. */
interface Directory {
  readonly byUsername: ReadonlyMap<string, Entry>;
  readonly bySubject: ReadonlyMap<string, Entry>;
  readonly hashes: readonly string[];
}

function directoryOf(users: readonly LocalUser[]): Directory {
  const people = users.map(entryOf);
  return {
    byUsername: new Map(people.map((person) => [person.user.username, person])),
    bySubject: new Map(people.map((person) => [person.subject, person])),
    hashes: users.filter(({ disabled }) => !disabled).map(({ passwordHash }) => passwordHash),
  };
}

export interface LocalUsersOptions {
  readonly users: readonly LocalUser[];
  readonly clock: Clock;
  /** Default: two at once (38 MiB), a hundred more queued. */
  readonly hashing?: HashingLimits;
}

/** The local users as resource owners of the protocol. */
export class LocalUsers implements People {
  readonly #clock: Clock;
  readonly #verifier: PasswordVerifier;
  #users: readonly LocalUser[];
  #isWhole = true;
  #outdated: ReadonlySet<string> = new Set();
  #directory: Directory;
  #onChange = () => {};

  constructor({ users, clock, hashing = { concurrent: 2, waiting: 100 } }: LocalUsersOptions) {
    this.#clock = clock;
    this.#verifier = new PasswordVerifier(hashing);
    this.#users = users;
    this.#directory = directoryOf(users);
  }

  /** Calls the listener, the only one, after each change of the users. */
  onChange(listener: () => void): void {
    this.#onChange = listener;
  }

  /**
   * By subject, what is compared after a change: another text for another password hash and for a disabled user.
   * {@link UserStore} notes it.
   */
  get credentials(): ReadonlyMap<string, string> {
    const people = [...this.#directory.bySubject.values()];
    return new Map(
      people.map(({ subject, credential, user }) => [subject, user.disabled ? `disabled.${credential}` : credential]),
    );
  }

  /** Whether no user is known to be missing: an absence may be that of a list that cannot be read. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** Whether a user is as its list has it now: of a list with a fault an older reading applies. */
  isCurrent(subject: string): boolean {
    return !this.#outdated.has(subject);
  }

  /**
   * Replaces all users at once. A removed or disabled user loses sessions and grants at their next use.
   * @param reading the state of the lists: `outdated` has the subjects that {@link isCurrent} denies
   */
  replace(users: readonly LocalUser[], { isWhole = true, outdated = NONE }: UsersReading = {}): void {
    this.#users = users;
    this.#isWhole = isWhole;
    this.#outdated = outdated;
    this.#directory = directoryOf(users);
    this.#onChange();
  }

  /** @throws OAuthError temporarily_unavailable when too many sign-ins are queued; the password was not verified. */
  async authenticate(username: string, password: string): Promise<ResourceOwner | undefined> {
    const name = username.normalize('NFC');
    const person = this.#enabled(name);
    if (!person) {
      await this.#verifier.wasteWork(password, this.#hashLike(name));
      return undefined;
    }
    const right = await this.#verifier.matches(password, person.user.passwordHash);
    // The file may have changed while the password was verified.
    const still = this.#enabled(name)?.credential === person.credential;
    if (!right || !still) return undefined;
    const { subject, credential, user } = person;
    return { subject, username: user.username, displayName: user.displayName ?? user.username, credential };
  }

  async lookUp(username: string): Promise<NamedPerson | undefined> {
    return this.#directory.byUsername.get(username.normalize('NFC'))?.named;
  }

  get takesPasswords(): boolean {
    return this.#users.length > 0;
  }

  async find(subject: string): Promise<Person | undefined> {
    const entry = this.#directory.bySubject.get(subject);
    if (entry === undefined || this.#revokedBefore(entry) === Number.POSITIVE_INFINITY) return undefined;
    return entry.person;
  }

  revokedBefore({ subject }: Pick<Person, 'subject'>): number {
    const person = this.#directory.bySubject.get(subject);
    return person === undefined ? Number.POSITIVE_INFINITY : this.#revokedBefore(person);
  }

  #revokedBefore({ user }: Entry): number {
    const { disabled, revokeTokensBefore = 0 } = user;
    return disabled || revokeTokensBefore > this.#clock.now() ? Number.POSITIVE_INFINITY : revokeTokensBefore;
  }

  #enabled(name: string): Entry | undefined {
    const person = this.#directory.byUsername.get(name);
    return person && this.#revokedBefore(person) !== Number.POSITIVE_INFINITY ? person : undefined;
  }

  /** The hash whose cost a sign-in with an unknown name takes: always the same one for a name, as for a real user. */
  #hashLike(name: string): string | undefined {
    const { hashes } = this.#directory;
    if (hashes.length === 0) return undefined;
    return hashes[createHash('sha256').update(name).digest().readUInt32BE() % hashes.length];
  }
}
