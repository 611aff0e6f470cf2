// The entries of lists of users that only shut people out: which people each means, and the strictest that means a person.

import { LOCAL_USERS } from '../oauth/registry/identity-provider.ts';

/** An entry without a password. It has one of `sub`, `email` and `username`, and says how much it blocks. */
export interface Block {
  /** An identity provider, or {@link LOCAL_USERS}; undefined beside `sub` alone: any of them. */
  readonly provider?: string | undefined;
  /** `usr_…` */
  readonly sub?: string | undefined;
  /** Compared in any letter case, as `username` is; also with an address that the provider did not verify. */
  readonly email?: string | undefined;
  readonly username?: string | undefined;
  readonly disabled?: boolean | undefined;
  /** Epoch milliseconds. */
  readonly revokeTokensBefore?: number | undefined;
}

/** What a block is compared with. */
export interface Blockable {
  readonly subject: string;
  readonly username: string;
  readonly email: string | undefined;
  /** Undefined for a local user. */
  readonly provider?: { readonly name: string; readonly unverifiedEmail?: string | undefined } | undefined;
}

/** The blocks of now, replaced as a whole. */
export class Blocks {
  /** By the name of a person, the strictest time. */
  #times: ReadonlyMap<string, number> = new Map();
  #revision = 0;

  constructor(blocks: readonly Block[] = []) {
    this.replace(blocks);
  }

  replace(blocks: readonly Block[]): void {
    const times = new Map<string, number>();
    for (const block of blocks) {
      const { provider, sub, email, username, disabled, revokeTokensBefore = 0 } = block;
      const key = keyOf(provider, { sub, email, username });
      times.set(key, Math.max(times.get(key) ?? 0, disabled ? Number.POSITIVE_INFINITY : revokeTokensBefore));
    }
    const isSame = times.size === this.#times.size && [...times].every(([key, time]) => this.#times.get(key) === time);
    if (!isSame) this.#revision += 1;
    this.#times = times;
  }

  /** Another one after each change. */
  get revision(): number {
    return this.#revision;
  }

  /**
   * The latest `revokeTokensBefore` of the blocks that mean the person, epoch milliseconds: Infinity where one disables, 0
   * where there is none. While the time is ahead the person may hold nothing.
   */
  strictest({ subject: sub, username, email, provider }: Blockable): number {
    if (this.#times.size === 0) return 0;
    const name = provider?.name ?? LOCAL_USERS;
    const keys = [keyOf(undefined, { sub }), keyOf(name, { sub }), keyOf(name, { username })];
    for (const address of [email, provider?.unverifiedEmail]) {
      if (address !== undefined) keys.push(keyOf(name, { email: address }));
    }
    return Math.max(...keys.map((key) => this.#times.get(key) ?? 0));
  }
}

/** Of two names that differ in letter case alone it is the same. A subject has a case. */
function keyOf(provider: string | undefined, { sub, email, username }: Pick<Block, 'sub' | 'email' | 'username'>) {
  if (sub !== undefined) return `${provider ?? ''}\0sub\0${sub}`;
  return email !== undefined
    ? `${provider}\0email\0${folded(email)}`
    : `${provider}\0username\0${folded(username ?? '')}`;
}

/** By way of capitals: some letters have two small forms. */
function folded(name: string): string {
  return name.normalize('NFC').toUpperCase().toLowerCase().normalize('NFC');
}
