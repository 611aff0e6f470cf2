// What never changes about the grants that this process had to do with lately: knowing the subject from before saves the
// refresh of an active session one of its two round trips, and knowing the keys of its watermarks three hashes.

import { RecentValues } from '../../oauth/values/recent-values.ts';
import type { RedisWatermarks } from '../stores/watermarks.ts';

/** How many are known at least; twice as many, the most, take some 8 MB. */
const LEAST = 5000;

/** Whose watermarks end a grant. */
interface Owners {
  readonly clientUid: string;
  readonly subject: string;
}

export class GrantCache {
  readonly #watermarks: Pick<RedisWatermarks, 'keysFor'>;
  readonly #subjects = new RecentValues<string>(LEAST);
  readonly #watermarkKeys = new RecentValues<Owners & { readonly keys: readonly string[] }>(LEAST);

  constructor({ watermarks }: { readonly watermarks: Pick<RedisWatermarks, 'keysFor'> }) {
    this.#watermarks = watermarks;
  }

  subjectOf(grantId: string): string | undefined {
    return this.#subjects.get(grantId);
  }

  learn(grantId: string, subject: string): void {
    this.#subjects.set(grantId, subject);
  }

  /** The keys of the watermarks that its scripts look at, were its owners these: a client may present what is another's. */
  watermarkKeysOf(grantId: string, { clientUid, subject }: Owners): readonly string[] {
    const known = this.#watermarkKeys.get(grantId);
    if (known?.clientUid === clientUid && known.subject === subject) return known.keys;
    const keys = this.#watermarks.keysFor(clientUid, subject);
    this.#watermarkKeys.set(grantId, { clientUid, subject, keys });
    return keys;
  }
}
