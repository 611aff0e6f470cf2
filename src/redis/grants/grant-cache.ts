// A cache of the immutable facts about recently used grants. With a cached subject a refresh needs one round trip to
// Redis instead of two; cached watermark keys save the refresh three hashes.

import type { GrantParties } from '../../oauth/ports/grant-store.ts';
import { RecentValues } from '../../oauth/values/recent-values.ts';
import type { RedisWatermarks } from '../stores/watermarks.ts';

/** This many of the most recently used grants are always cached, and at most twice as many, which take some 8 MB. */
const MIN_ENTRIES = 5000;

export class GrantCache {
  readonly #watermarks: Pick<RedisWatermarks, 'keysFor'>;
  readonly #subjects = new RecentValues<string>(MIN_ENTRIES);
  readonly #watermarkKeys = new RecentValues<GrantParties & { readonly keys: readonly string[] }>(MIN_ENTRIES);

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
   * The keys of the watermarks that the scripts read for a grant of these parties. A cached entry of other parties is
   * not used, because a client may present a token of another client.
   */
  watermarkKeysOf(grantId: string, { clientUid, subject }: GrantParties): readonly string[] {
    const known = this.#watermarkKeys.get(grantId);
    if (known?.clientUid === clientUid && known.subject === subject) return known.keys;
    const keys = this.#watermarks.keysFor(clientUid, subject);
    this.#watermarkKeys.set(grantId, { clientUid, subject, keys });
    return keys;
  }
}
