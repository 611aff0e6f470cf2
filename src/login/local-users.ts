// The local users of a `users.yaml`: authenticates them by password and reports whether a subject is still active.
// `users-yaml.ts` parses the file, `password.ts` verifies passwords.

import { createHash } from 'node:crypto';
import type { NamedPerson, ResourceOwner, ResourceOwners } from '../oauth/ports/ports.ts';
import { type HashingLimits, PasswordJudge } from './password.ts';

export { hashPassword } from './password.ts';

/** One entry of `users.yaml`. */
export interface LocalUser {
  readonly username: string;
  readonly passwordHash: string;
  readonly displayName?: string | undefined;
  readonly email?: string | undefined;
  readonly groups?: readonly string[] | undefined;
  readonly disabled?: boolean | undefined;
}

/** What counts of a `users.yaml` with a fault: it can take away only. Absent members change no user. */
export interface Denials {
  /** The usernames of entries that disable them, whatever else is wrong. */
  readonly disabled?: ReadonlySet<string>;
  /** Every username of the file; undefined when one cannot be read, as then no user is known to be gone. */
  readonly named?: ReadonlySet<string> | undefined;
}

interface FaultyUsers {
  /** The place of the first fault in the list, such as `[1, 'passwordHash']`. Default: the whole list. */
  readonly path?: readonly PropertyKey[] | undefined;
  /** Default: nothing of the file counts. */
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
 * The `sub` of a local user: `usr_` and 132 bits of SHA-256 over ("local", username). It outlives a change of the
 * pepper and can never equal a client id (those may not begin `usr_`).
 */
function subjectOf(username: string): string {
  return `usr_${createHash('sha256').update(`local\0${username}`).digest('base64url').slice(0, 22)}`;
}

/** The credential is 132 bits of SHA-256 over the password hash, which has a salt. */
function namedPerson({ username, passwordHash, disabled }: LocalUser): NamedPerson {
  const digest = createHash('sha256').update(`grantry credential\0${passwordHash}`).digest('base64url').slice(0, 22);
  return { subject: subjectOf(username), credential: disabled ? undefined : digest };
}

interface Person {
  readonly owner: ResourceOwner;
  readonly passwordHash: string;
}

/** One consistent set of users, replaced as a whole. */
interface Directory {
  readonly byUsername: ReadonlyMap<string, Person>;
  readonly subjects: ReadonlySet<string>;
  readonly hashes: readonly string[];
  /** By username, disabled people too; made beforehand, so that a lookup costs the same whatever it finds. */
  readonly named: ReadonlyMap<string, NamedPerson>;
}

function directoryOf(users: readonly LocalUser[]): Directory {
  const enabled = users.filter((user) => !user.disabled);
  const people = enabled.map(({ username, displayName, passwordHash }) => ({
    owner: { subject: subjectOf(username), username, displayName: displayName ?? username },
    passwordHash,
  }));
  return {
    byUsername: new Map(people.map((person) => [person.owner.username, person])),
    subjects: new Set(people.map((person) => person.owner.subject)),
    hashes: people.map((person) => person.passwordHash),
    named: new Map(users.map((user) => [user.username, namedPerson(user)])),
  };
}

export interface LocalUsersOptions {
  readonly users: readonly LocalUser[];
  /** Default: two at once (38 MiB), a hundred more queued. */
  readonly hashing?: HashingLimits;
}

/** The local users as resource owners of the protocol. */
export class LocalUsers implements ResourceOwners {
  readonly #judge: PasswordJudge;
  #users: readonly LocalUser[];
  #directory: Directory;

  constructor({ users, hashing = { concurrent: 2, waiting: 100 } }: LocalUsersOptions) {
    this.#judge = new PasswordJudge(hashing);
    this.#users = users;
    this.#directory = directoryOf(users);
  }

  /** Replaces all users at once. A removed or disabled user loses sessions and grants at their next use. */
  replace(users: readonly LocalUser[]): void {
    this.#users = users;
    this.#directory = directoryOf(users);
  }

  /** Disables and removes the users that a file with a fault denies; no other user changes, and none is added. */
  restrict({ disabled, named }: Denials): void {
    const users = this.#users.filter(({ username }) => named?.has(username) ?? true);
    this.replace(users.map((user) => (disabled?.has(user.username) ? { ...user, disabled: true } : user)));
  }

  /** @throws OAuthError temporarily_unavailable when too many sign-ins are queued; the password was not verified. */
  async authenticate(username: string, password: string): Promise<ResourceOwner | undefined> {
    const name = username.normalize('NFC');
    const person = this.#directory.byUsername.get(name);
    if (!person) {
      await this.#judge.wasteWork(password, this.#hashLike(name));
      return undefined;
    }
    const right = await this.#judge.matches(password, person.passwordHash);
    // The file may have changed while the password was verified.
    const still = this.#directory.byUsername.get(name)?.passwordHash === person.passwordHash;
    return right && still ? person.owner : undefined;
  }

  async lookUp(username: string): Promise<NamedPerson | undefined> {
    return this.#directory.named.get(username.normalize('NFC'));
  }

  async isActive(subject: string): Promise<boolean> {
    return this.#directory.subjects.has(subject);
  }

  /** The hash whose cost a sign-in with an unknown name takes: always the same one for a name, as for a real user. */
  #hashLike(name: string): string | undefined {
    const { hashes } = this.#directory;
    if (hashes.length === 0) return undefined;
    return hashes[createHash('sha256').update(name).digest().readUInt32BE() % hashes.length];
  }
}
