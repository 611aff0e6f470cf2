// What never changes about the grants that this process had to do with lately: knowing the subject from before saves the
// refresh of an active session one of its two round trips, and knowing the keys of its watermarks three hashes.

import { RecentValues } from '../oauth/recent-values.ts';
import type { RedisKeys } from './keys.ts';
import { watermarkKeys } from './watermarks.ts';

/** Twice as many take some 8 MB. */
const LEAST = 5000;

/** Whose watermarks end a grant. */
interface Owners {
  readonly clientUid: string;
  readonly subject: string;
}

export class KnownGrants {
  readonly #keys: RedisKeys;
  readonly #subjects = new RecentValues<string>(LEAST);
  readonly #watermarks = new RecentValues<Owners & { readonly keys: readonly string[] }>(LEAST);

  constructor({ keys }: { readonly keys: RedisKeys }) {
    this.#keys = keys;
  }

  subjectOf(grantId: string): string | undefined {
    return this.#subjects.get(grantId);
  }

  learn(grantId: string, subject: string): void {
    this.#subjects.set(grantId, subject);
  }

  /** The keys of the watermarks that end it, were its owners these: a client may present what is another's. */
  watermarksOf(grantId: string, { clientUid, subject }: Owners): readonly string[] {
    const known = this.#watermarks.get(grantId);
    if (known?.clientUid === clientUid && known.subject === subject) return known.keys;
    const keys = watermarkKeys(this.#keys, clientUid, subject);
    this.#watermarks.set(grantId, { clientUid, subject, keys });
    return keys;
  }
}
