// grantry's state in Redis as the run writes it outside the measured time: through the product's own stores, with what a
// real sign-in puts into a grant.

import { createHash, randomBytes } from 'node:crypto';
import type { Grant } from '../src/oauth/grant-store.ts';
import { Handles } from '../src/oauth/handles.ts';
import type { Stores } from '../src/oauth/ports.ts';
import { connectRedis } from '../src/redis/connection.ts';
import { RedisKeys } from '../src/redis/keys.ts';
import { parseRedisUrl } from '../src/redis/redis-url.ts';
import { redisStores } from '../src/redis/stores.ts';
import {
  AUDIENCE,
  CLIENT_ID,
  CLIENT_UID,
  CODE_CHALLENGE,
  CODE_SECONDS,
  REDIRECT_URI,
  SCOPE,
  USERNAME,
} from './load-client.ts';

/** Writes made at a time. */
const BATCH = 50;

/** A grant that a person has just given, and its code. */
export interface GivenGrant {
  readonly code: string;
  readonly secretHash: string;
  readonly grant: Grant;
}

export interface GrantryState {
  readonly stores: Stores;
  /** As the authorization endpoint does it once the person has agreed. */
  give(count: number): Promise<readonly GivenGrant[]>;
  close(): Promise<void>;
}

/** Connects to a Redis that grantry uses, with its default prefix. */
export async function openGrantryState(redisUrl: string): Promise<GrantryState> {
  const connection = connectRedis({ target: parseRedisUrl(redisUrl) });
  await connection.ready(5000);
  const stores = redisStores({ connection, keys: new RedisKeys('grantry:') });
  const random = { bytes: (count: number) => randomBytes(count) };
  // No code depends on a pepper, nor on the issuer.
  const handles = new Handles({ issuer: 'https://id.example.com', peppers: [randomBytes(32)], random });
  return {
    stores,
    give: (count) =>
      inBatches(Array.from({ length: count }), async () => {
        const { code, grantId, secretHash } = handles.newCode(SUBJECT);
        const grant = newGrant(grantId);
        await stores.grants.issue(grant, secretHash, 1000 * CODE_SECONDS);
        return { code, secretHash, grant };
      }),
    close: () => connection.close(),
  };
}

/** Does the work for each, some at a time, and answers in the same order. */
export async function inBatches<Each, Done>(
  all: readonly Each[],
  work: (each: Each) => Promise<Done>,
): Promise<readonly Done[]> {
  const done: Done[] = [];
  for (let from = 0; from < all.length; from += BATCH) {
    done.push(...(await Promise.all(all.slice(from, from + BATCH).map(work))));
  }
  return done;
}

/** What `grantry dev` calls the person of this name. */
const SUBJECT = `usr_${createHash('sha256').update(`local\0${USERNAME}`).digest('base64url').slice(0, 22)}`;

function newGrant(grantId: string): Grant {
  return {
    grantId,
    ...{ clientUid: CLIENT_UID, clientId: CLIENT_ID, redirectUri: REDIRECT_URI, codeChallenge: CODE_CHALLENGE },
    subject: SUBJECT,
    sessionId: randomBytes(32).toString('base64url'),
    authTime: Date.now(),
    ...{ scope: [SCOPE], audiences: [AUDIENCE] },
  };
}
