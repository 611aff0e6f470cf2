// The local users of a `users.yaml`: authenticates them by password and reports whether a subject is still active.
// `users-yaml.ts` parses the file, `password.ts` verifies passwords.

import { createHash } from 'node:crypto';
import type { ResourceOwner, ResourceOwners } from '../oauth/ports/ports.ts';
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

/** A `users.yaml` that cannot be used; the message names the entry and the field, and never shows a hash. */
export class UsersFileError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UsersFileError';
  }
}

/**
 * The `sub` of a local user: `usr_` and 132 bits of SHA-256 over ("local", username). It outlives a change of the
 * pepper and can never equal a client id (those may not begin `usr_`).
 */
function subjectOf(username: string): string {
  return `usr_${createHash('sha256').update(`local\0${username}`).digest('base64url').slice(0, 22)}`;
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
  #directory: Directory;

  constructor({ users, hashing = { concurrent: 2, waiting: 100 } }: LocalUsersOptions) {
    this.#judge = new PasswordJudge(hashing);
    this.#directory = directoryOf(users);
  }

  /** Replaces all users at once. A removed or disabled user loses sessions and grants at their next use. */
  replace(users: readonly LocalUser[]): void {
    this.#directory = directoryOf(users);
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
