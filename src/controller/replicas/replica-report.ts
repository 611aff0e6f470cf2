// The schema of a replica's report. A report is untrusted input, as if another process could have answered in its
// place.

import { z } from 'zod';

const DAY = 86_400_000;

/** A DNS subdomain name. */
const SECRET_NAME = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/;
const USERS_MESSAGE = /^[\x20-\x7e]{1,500}$/;

/**
 * The answer of `/registry/report`.
 * @param now epoch milliseconds; no time may be more than a day later, whatever the clock skew
 */
export function replicaReportSchema(now: number) {
  const isNotFuture = (text: string) => Date.parse(text) <= now + DAY;
  const day = z.iso.date().refine(isNotFuture);
  const time = z.iso
    .datetime({ offset: true })
    .refine(isNotFuture)
    .transform((text) => Date.parse(text));
  // A replica of an earlier version reports no generation.
  const denial = z.object({ reason: z.string(), generation: z.int().optional(), count: z.int(), lastTime: time });
  return z.object({
    cursor: z.string(),
    lastUsed: z.record(z.string(), day),
    // A replica of an earlier version reports none.
    providers: z
      .record(
        z.string(),
        z.object({
          generation: z.int(),
          reachable: z.boolean(),
          reason: z.string(),
          isOverage: z.boolean().optional(),
        }),
      )
      .optional(),
    // As providers are.
    users: z
      .record(z.string(), z.object({ name: z.string().regex(SECRET_NAME), message: z.string().regex(USERS_MESSAGE) }))
      .optional(),
    denied: z.record(z.string(), z.array(denial)),
  });
}

/** Times are epoch milliseconds, days `2026-01-31`. */
export type ReplicaReport = z.output<ReturnType<typeof replicaReportSchema>>;

export type Denial = ReplicaReport['denied'][string][number];
