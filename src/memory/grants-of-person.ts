// The index of the grants that one person has at one client, and the choice of those that make room for a new one.

import { type Grant, KEPT_CODES, KEPT_GRANTS, MOST_RECORDS } from '../oauth/ports/grant-store.ts';
import type { ExpiringMap } from './expiring-map.ts';
import { type GrantRecord, isRedeemed } from './grant-record.ts';

/** The ids of the grants, the oldest first, by person and client; some may be gone. */
export class GrantsOfPerson {
  readonly #index: ExpiringMap<readonly string[]>;
  readonly #records: ExpiringMap<GrantRecord>;

  constructor({ index, records }: { index: ExpiringMap<readonly string[]>; records: ExpiringMap<GrantRecord> }) {
    this.#index = index;
    this.#records = records;
  }

  /**
   * Adds a new grant, which is needed until then.
   * @returns the grants that have to make room for it @throws StoreUnavailableError when the map is full
   */
  add({ subject, clientUid, grantId }: Grant, until: number): readonly GrantRecord[] {
    const key = `${subject} ${clientUid}`;
    const before = this.#index.get(key) ?? [];
    const expiresAt = Math.max(until, this.#index.expiryOf(key) ?? 0);
    if (before.length < MOST_RECORDS) {
      this.#index.set(key, [...before, grantId], expiresAt);
      return [];
    }
    const records = before.map((id) => this.#records.get(id)).filter((record) => record !== undefined);
    const leaving = outnumbered(records);
    const staying = records.filter((record) => !leaving.includes(record)).map(({ grant }) => grant.grantId);
    this.#index.set(key, [...staying, grantId], expiresAt);
    return leaving;
  }
}

/** The records that make room for one more code. @param records the oldest first */
function outnumbered(records: readonly GrantRecord[]): readonly GrantRecord[] {
  const codes = records.filter((record) => !isRedeemed(record));
  const redeemed = records.filter(isRedeemed).sort((one, other) => Number(other.revoked) - Number(one.revoked));
  return [...first(codes, codes.length + 1 - KEPT_CODES), ...first(redeemed, redeemed.length - KEPT_GRANTS)];
}

function first<Item>(items: readonly Item[], count: number): readonly Item[] {
  return items.slice(0, Math.max(0, count));
}
