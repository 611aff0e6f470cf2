// Which tokens of a grant are active: those of the client and the person of the grant, until one of them or a watermark ends it.

import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { memoryStores } from '../../../src/memory/stores.ts';
import type { People, Person } from '../../../src/oauth/ports/ports.ts';
import type { StoredAccessToken } from '../../../src/oauth/ports/token-stores.ts';
import type { Client } from '../../../src/oauth/registry/client.ts';
import { KeyRing } from '../../../src/oauth/registry/keys.ts';
import { Registry } from '../../../src/oauth/registry/registry.ts';
import { newTokenId } from '../../../src/oauth/tokens/access-token-claims.ts';
import { Handles } from '../../../src/oauth/tokens/handles.ts';
import { type PresentedToken, TokenStatus } from '../../../src/oauth/tokens/token-status.ts';
import { AccessTokens } from '../../../src/oauth/tokens/tokens.ts';
import { redeemed } from '../../contracts/sample-grants.ts';
import { TestClock } from '../../grantry.ts';
import { aClient } from '../a-client.ts';

const ISSUER = 'https://id.example';
const random = { bytes: (count: number) => randomBytes(count) };
const SHOP = aClient({ uid: 'uid-of-shop', clientId: 'default.shop', grantTypes: ['authorization_code'] });
const MAIL = aClient({ uid: 'uid-of-mail', clientId: 'default.mail', grantTypes: ['authorization_code'] });
const registry = new Registry([SHOP, MAIL], new KeyRing([]));

async function aWorld() {
  const clock = new TestClock();
  const stores = memoryStores({ clock });
  const handles = new Handles({ issuer: ISSUER, peppers: [randomBytes(32)], random });
  const tokens = new AccessTokens({ issuer: ISSUER, clock, random, handles, endOfTick: setImmediate });
  const asPerson = (subject: string) => ({ subject }) as Person;
  const owners = { find: async (subject: string) => asPerson(subject), revokedBefore: () => 0 } as unknown as People;
  const grant = await redeemed(stores.grants);
  const now = Math.floor(clock.now() / 1000);
  /** A JWT of the grant, for these parties. */
  const jwtOf = ({
    client = SHOP,
    subject = grant.subject,
  }: {
    client?: Client;
    subject?: string;
  } = {}): PresentedToken => ({
    kind: 'jwt',
    claims: {
      iss: ISSUER,
      sub: subject,
      aud: 'https://api.example',
      client_id: client.clientId,
      iat: now,
      exp: now + 600,
      jti: newTokenId(client, random),
      scope: 'read',
      grant_id: grant.grantId,
    },
  });
  const status = new TokenStatus({ clock, stores, handles, tokens, owners });
  const activeToken = (presented: PresentedToken) => status.activeToken(presented, registry);
  return { stores, grant, jwtOf, activeToken, now };
}

describe('a JWT of a grant', () => {
  it('given the client and the person of the grant → active, with the person', async () => {
    const { grant, jwtOf, activeToken } = await aWorld();
    expect(await activeToken(jwtOf())).toEqual({ person: { subject: grant.subject } });
  });

  it('given another client, or another person → inactive', async () => {
    const { jwtOf, activeToken } = await aWorld();
    expect(await activeToken(jwtOf({ client: MAIL }))).toBeUndefined();
    expect(await activeToken(jwtOf({ subject: 'usr_bob' }))).toBeUndefined();
  });

  it.each(['mark', 'grant', 'watermark'] as const)('given the %s that revokes it → inactive', async (what) => {
    const { stores, grant, jwtOf, activeToken, now } = await aWorld();
    const jwt = jwtOf();
    if (what === 'mark' && jwt.kind === 'jwt') await stores.revokedTokens.mark(jwt.claims.jti, now + 600);
    if (what === 'grant') await stores.grants.revoke(grant.grantId);
    if (what === 'watermark') await stores.watermarks.raise({ kind: 'user', subject: grant.subject });
    expect(await activeToken(jwt)).toBeUndefined();
  });
});

it('an opaque token of the grant of another client → inactive', async () => {
  const { grant, activeToken, now } = await aWorld();
  const token: StoredAccessToken = {
    tokenId: `${grant.grantId.slice(0, 3)}.token`,
    issuedAtSeconds: now,
    expiresAtSeconds: now + 600,
    clientUid: grant.clientUid,
    clientId: grant.clientId,
    subject: grant.subject,
    scope: [...grant.scope],
    audience: grant.audiences[0] ?? '',
    grantId: grant.grantId,
    authTime: grant.authTime,
  };
  expect(await activeToken({ kind: 'opaque', token })).toEqual({ person: { subject: grant.subject } });
  expect(await activeToken({ kind: 'opaque', token: { ...token, clientUid: MAIL.uid } })).toBeUndefined();
});
