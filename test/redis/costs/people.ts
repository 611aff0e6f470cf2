// The people of the ledger: local users with one password, and names of one length.

import { createHash } from 'node:crypto';
import { hash } from '@node-rs/argon2';
import { LocalUsers } from '../../../src/login/local/local-users.ts';
import type { Clock } from '../../../src/oauth/ports/ports.ts';

export const PASSWORD = 'the password of a person';

const PEOPLE = 100;
/** The cheapest that a list of users may hold: what a password costs is not counted. */
const COST = { memoryCost: 7168, timeCost: 1, parallelism: 1 };

/** The name of one of {@link PEOPLE}. */
export function usernameOf(number: number): string {
  if (number >= PEOPLE) throw new RangeError('there are no more people');
  return `person-${String(number).padStart(2, '0')}`;
}

/** What grantry calls a local user of this name. */
export function subjectOf(username: string): string {
  return `usr_${createHash('sha256').update(`local\0${username}`).digest('base64url').slice(0, 22)}`;
}

export async function localPeople(clock: Clock): Promise<LocalUsers> {
  const passwordHash = await hash(PASSWORD, COST);
  const users = Array.from({ length: PEOPLE }, (_, number) => ({
    username: usernameOf(number),
    passwordHash,
    displayName: 'A Person',
    email: 'person@example.com',
  }));
  return new LocalUsers({ clock, users });
}
