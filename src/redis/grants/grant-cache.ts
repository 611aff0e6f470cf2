// A cache of the immutable facts about recently used grants. A cached subject saves a refresh one of its two round
// trips; cached watermark keys save it three hashes.

import { RecentValues } from '../../oauth/values/recent-values.ts';
import type { RedisWatermarks } from '../stores/watermarks.ts';

/** How many grants are cached at least; at most twice as many, which take some 8 MB. */
const MIN_ENTRIES = 5000;

/** The client and the person whose watermarks end a grant. */
interface Owners {
  readonly clientUid: string;
  readonly subject: string;
}

export class GrantCache {
  readonly #watermarks: Pick<RedisWatermarks, 'keysFor'>;
  readonly #subjects = new RecentValues<string>(MIN_ENTRIES);
  readonly #watermarkKeys = new RecentValues<Owners & { readonly keys: readonly string[] }>(MIN_ENTRIES);

  constructor({ watermarks }: { readonly watermarks: Pick<RedisWatermarks, 'keysFor'> }) {
    this.#watermarks = watermarks;
  }

  subjectOf(grantId: string): string | undefined {
    return this.#subjects.get(grantId);
  }

  setSubject(grantId: string, subject: string): void {
    this.#subjects.set(grantId, subject);
  }

  /**
   * The keys of the watermarks that the scripts read for a grant of these owners. A cached entry of other owners is not
   * used: a client may present a token of another client.
   */
  watermarkKeysOf(grantId: string, { clientUid, subject }: Owners): readonly string[] {
    const known = this.#watermarkKeys.get(grantId);
    if (known?.clientUid === clientUid && known.subject === subject) return known.keys;
    const keys = this.#watermarks.keysFor(clientUid, subject);
    this.#watermarkKeys.set(grantId, { clientUid, subject, keys });
    return keys;
  }
}
