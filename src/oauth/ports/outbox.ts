// Entries to be delivered elsewhere: written in the same action as its cause, and kept until it is acknowledged.

/** The entries of all shards. `Name` is what of an entry names it. */
export interface Outbox<Entry extends Name, Name = Entry> {
  /** Up to `limit` entries of one shard that can be taken now, in no order. */
  list(shard: string, limit?: number): Promise<readonly Entry[]>;
  /**
   * Takes an entry for one try: no other take succeeds for `lease` milliseconds, or until it is postponed.
   * @returns how often it was taken before; undefined while another try has it or it is postponed, and once it is acknowledged
   */
  take(entry: Name, lease: number): Promise<number | undefined>;
  /** Nothing takes the entry for so many milliseconds. */
  postpone(entry: Name, pause: number): Promise<void>;
  /** Nothing is to be delivered any more. Idempotent. @returns whether the entry was there */
  acknowledge(entry: Name): Promise<boolean>;
}
