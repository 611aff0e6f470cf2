// Notices what Redis does not tell: that shards were emptied, or that another server took over. Each shard holds a marker.
// A missing one means that revocations may be lost too, so everything made until then dies with the global watermark.

import type { WatermarkStore } from '../oauth/ports.ts';
import type { ManagedConnection, Script } from './connection.ts';
import { agreeOnIssuer, IssuerConflictError } from './deployment.ts';
import { type RedisKeys, SHARDS } from './keys.ts';
import { CLOCK } from './script-clock.ts';

/** Milliseconds between two looks. */
const INTERVAL = 1000;

const LOOK = `${CLOCK}
local missing = {}
for index, key in ipairs(KEYS) do
  if redis.call('EXISTS', key) == 0 then missing[#missing + 1] = index end
end
return { string.format('%.0f', now), redis.call('INFO', 'replication'):match('master_replid:(%w+)'), missing }
`;

const MARK: Script = { name: 'markerWrite', keys: 1, lua: "redis.call('SET', KEYS[1], 1)" };

/** What a look found, for logs and metrics. */
export type ShardEvent =
  /** Shards without marker; the watermark was raised. `isFirstLook`: a new Redis looks the same. */
  | { readonly kind: 'found_empty'; readonly shards: number; readonly isFirstLook: boolean }
  /** Another server answers, or the same again: so many revocations were applied again. */
  | { readonly kind: 'reasserted'; readonly writes: number }
  /** Redis was emptied and another deployment has stored its issuer since. */
  | { readonly kind: 'issuer_conflict'; readonly error: IssuerConflictError };

export interface ShardWatchParts {
  readonly connection: ManagedConnection;
  readonly keys: RedisKeys;
  readonly watermarks: WatermarkStore;
  /** The agreed one; stored again where it was lost. */
  readonly issuer: string;
  readonly observe: (event: ShardEvent) => void;
}

export class ShardWatch {
  readonly #parts: ShardWatchParts;
  /** Markers that one script may look at together. */
  readonly #groups: readonly (readonly string[])[];
  readonly #look: Script;
  /** The `master_replid` of each group's server as last seen. */
  #replids: readonly string[] = [];
  #isFirstLook = true;
  #mustReassert = false;
  #looking: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: ShardWatchParts) {
    this.#parts = parts;
    const markers = SHARDS.map((shard) => parts.keys.marker(shard));
    this.#groups = parts.connection.crossesSlots ? [markers] : markers.map((marker) => [marker]);
    this.#look = { name: 'markerLook', keys: this.#groups[0]?.length ?? 0, lua: LOOK };
  }

  /**
   * Looks once, then each second and after each reconnect until `stop`. On a new or emptied Redis it resolves when what
   * is made from now on outlives the watermark, which has to wait for the next full second.
   * @throws StoreUnavailableError when the first look failed; it goes on all the same
   */
  async start(): Promise<void> {
    this.#parts.connection.onReconnect(() => {
      this.#mustReassert = true;
      this.#lookSoon();
    });
    this.#timer = setInterval(() => this.#lookSoon(), INTERVAL);
    const raisedTo = await this.look();
    if (raisedTo !== undefined) await new Promise((resolve) => setTimeout(resolve, 1000 - (raisedTo % 1000)));
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Looks now. @returns what the watermark was raised to, if it was. @throws StoreUnavailableError: look again */
  async look(): Promise<number | undefined> {
    const { connection, watermarks, observe } = this.#parts;
    const seen = await Promise.all(this.#groups.map((markers) => this.#lookAt(markers)));
    const missing = seen.flatMap((group) => group.missing);
    const replids = seen.map(({ replid }) => replid);
    const hasMoved = this.#replids.length > 0 && replids.some((replid, i) => replid !== this.#replids[i]);
    if (hasMoved || this.#mustReassert || missing.length > 0) {
      // Stays due when it fails half-way.
      this.#mustReassert = true;
      const writes = await connection.reassert();
      this.#mustReassert = false;
      if (writes > 0) observe({ kind: 'reasserted', writes });
    } else connection.forgetOld();
    let raisedTo: number | undefined;
    if (missing.length > 0) {
      raisedTo = Math.max(...seen.filter((group) => group.missing.length > 0).map(({ now }) => now));
      // The markers last: whoever dies in between leaves the work to the next look.
      await watermarks.raise({ kind: 'global' }, raisedTo);
      await Promise.all(missing.map((marker) => connection.run(MARK, [marker], [])));
      await this.#storeIssuer();
      observe({ kind: 'found_empty', shards: missing.length, isFirstLook: this.#isFirstLook });
    }
    this.#replids = replids;
    this.#isFirstLook = false;
    return raisedTo;
  }

  async #lookAt(markers: readonly string[]): Promise<{ now: number; replid: string; missing: readonly string[] }> {
    const reply = await this.#parts.connection.run(this.#look, markers, []);
    const [now, replid, missing] = reply as [string, string, number[]];
    return { now: Number(now), replid, missing: missing.flatMap((index) => markers[index - 1] ?? []) };
  }

  /** One look at a time; a failed one is repeated by the timer. */
  #lookSoon(): void {
    this.#looking ??= this.look()
      .then(() => {})
      .catch(() => {})
      .finally(() => {
        this.#looking = undefined;
      });
  }

  async #storeIssuer(): Promise<void> {
    const { issuer, observe } = this.#parts;
    try {
      await agreeOnIssuer(this.#parts, { explicit: issuer, fallback: issuer });
    } catch (error) {
      if (!(error instanceof IssuerConflictError)) throw error;
      observe({ kind: 'issuer_conflict', error });
    }
  }
}
