// What one replica may say of its clients: read as if somebody else could have answered in its place.

import { z } from 'zod';

const DAY = 86_400_000;
/** What a replica tells in one answer; the rest comes with the next one. */
const ALERTS_PER_REPORT = 1000;
/** What every replica takes as an id: one that was another would keep all of them from hearing of any. */
const ALERT_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** The answer of `/registry/report`. @param now nothing can have happened more than a day after it, however clocks differ */
export function replicaReportSchema(now: number) {
  const hasCome = (text: string) => Date.parse(text) <= now + DAY;
  const day = z.iso.date().refine(hasCome);
  const time = z.iso
    .datetime({ offset: true })
    .refine(hasCome)
    .transform((text) => Date.parse(text));
  // A replica of a version before this one says no generation.
  const denial = z.object({ reason: z.string(), generation: z.int().optional(), count: z.int(), lastTime: time });
  const id = z.string().regex(ALERT_ID);
  return z.object({
    cursor: z.string(),
    lastUsed: z.record(z.string(), day),
    denied: z.record(z.string(), z.array(denial)),
    alerts: z.array(z.object({ id, type: z.string(), clientUid: z.string(), time })).max(ALERTS_PER_REPORT),
  });
}

/** Times are epoch milliseconds, days `2026-01-31`. */
export type ReplicaReport = z.output<ReturnType<typeof replicaReportSchema>>;

export type Denial = ReplicaReport['denied'][string][number];
