// Requests that are refused, each beside the request that it would have been: it costs no more than that, and writes nothing to
// Redis, but for what is named here.

import { API, type Caller, FULL, FULL_OPAQUE, GRACELESS, OPAQUE, PLAIN, PORTAL } from './clients.ts';
import { fullTokens, MACHINE } from './full-rows.ts';
import type { Row } from './ledger.ts';
import { signIn } from './plain-rows.ts';
import type { ProviderWorld } from './provider-visits.ts';
import { type CostWorld, redemption, refreshing } from './world.ts';

/** A request that is refused. */
export interface RefusedRow<World = CostWorld> extends Row<World> {
  /** The name of the request that succeeds. */
  readonly insteadOf: string;
  /** Absent where it costs no more, and does not write. */
  readonly exception?: Exception;
}

interface Exception {
  readonly because: string;
  /** The columns in which it costs more. */
  readonly costsMore?: readonly string[];
  /** The commands by which it writes. */
  readonly writes?: readonly string[];
}

/** A client and its address may fail a few times. */
const WRONG: Caller = { ...PLAIN, secret: 'a-secret-that-was-never-one-of-a-client' };
const ALSO_WRONG: Caller = { ...OPAQUE, secret: WRONG.secret ?? '' };

const CODE_REPLAY: Exception = {
  because:
    'a replay revokes the grant (RFC 6749 §4.1.2, RFC 9700 §4.14.2) and stores an alert, which is logged at once',
  costsMore: ['from Redis', 'parsed'],
  writes: ['HSET', 'HSETNX'],
};

const TOKEN_REPLAY: Exception = {
  because: CODE_REPLAY.because,
  costsMore: ['inside scripts', 'from Redis', 'parsed'],
  writes: ['HSET', 'HSETNX'],
};

const FAILED_AUTHENTICATION: Exception = {
  because: 'failures are limited by a digest of the client that was named and the address',
  costsMore: ['hashes'],
};

const posts = (world: CostWorld, path: string, caller: Caller, token: string, status: number) =>
  world.posting(path, caller, { token }, status);

export const REFUSED_ROWS: readonly RefusedRow[] = [
  {
    name: 'client_credentials, wrong secret',
    insteadOf: 'client_credentials',
    exception: FAILED_AUTHENTICATION,
    prepare: (world) => world.posting('/token', WRONG, { grant_type: 'client_credentials' }, 401),
  },
  {
    name: 'redemption, wrong secret',
    insteadOf: 'redemption',
    prepare: async (world) => world.posting('/token', ALSO_WRONG, redemption(await world.code(OPAQUE)), 401),
  },
  {
    name: 'redemption, made-up code',
    insteadOf: 'redemption',
    prepare: (world) => world.posting('/token', PLAIN, redemption('a-code-that-was-never-made'), 400),
  },
  {
    name: 'redemption, unknown code',
    insteadOf: 'redemption',
    prepare: (world) => world.posting('/token', PLAIN, redemption(world.unknownCode()), 400),
  },
  {
    name: 'redemption, code of another client',
    insteadOf: 'redemption',
    prepare: async (world) => world.posting('/token', PLAIN, redemption(await world.code(OPAQUE)), 400),
  },
  {
    name: 'redemption, wrong verifier',
    insteadOf: 'redemption',
    exception: { because: 'a code is void after five wrong verifiers', writes: ['HSET'] },
    async prepare(world) {
      const form = { ...redemption(await world.code(PLAIN)), code_verifier: 'wrong'.repeat(10) };
      return await world.posting('/token', PLAIN, form, 400);
    },
  },
  {
    name: 'redemption, replayed code',
    insteadOf: 'redemption',
    exception: CODE_REPLAY,
    async prepare(world) {
      const code = await world.code(PLAIN);
      await world.post('/token', PLAIN, redemption(code));
      return await world.posting('/token', PLAIN, redemption(code), 400);
    },
  },
  {
    name: 'refresh, made-up token',
    insteadOf: 'refresh',
    prepare: (world) => world.posting('/token', PLAIN, refreshing('a-token-that-was-never-made'), 400),
  },
  {
    name: 'refresh, token of another client',
    insteadOf: 'refresh',
    prepare: async (world) =>
      world.posting('/token', PLAIN, refreshing((await world.tokens(OPAQUE)).refresh_token), 400),
  },
  {
    name: 'refresh, replayed token',
    insteadOf: 'refresh',
    exception: TOKEN_REPLAY,
    async prepare(world) {
      const { refresh_token: token } = await world.tokens(GRACELESS);
      await world.post('/token', GRACELESS, refreshing(token));
      return await world.posting('/token', GRACELESS, refreshing(token), 400);
    },
  },
  {
    name: 'userinfo, expired JWT',
    insteadOf: 'userinfo',
    async prepare(world) {
      const form = redemption(await world.code(PORTAL, signIn(world)));
      const { access_token: token } = await world.earlier(700, () => world.redeem(PORTAL, form));
      return world.callingUserinfo(PORTAL, token, 401);
    },
  },
  {
    name: 'introspection of a JWT of another client',
    insteadOf: 'introspection of a JWT',
    prepare: async (world) => posts(world, '/introspect', OPAQUE, (await world.tokens(PLAIN)).access_token, 200),
  },
  {
    name: 'introspection of an opaque token of another client',
    insteadOf: 'introspection of an opaque token',
    prepare: async (world) => posts(world, '/introspect', PLAIN, (await world.tokens(OPAQUE)).access_token, 200),
  },
  {
    name: 'introspection of a made-up token',
    insteadOf: 'introspection of an opaque token',
    prepare: (world) => posts(world, '/introspect', API, 'a-token-that-was-never-made', 200),
  },
  {
    name: 'revocation of a JWT of another client',
    insteadOf: 'revocation of a JWT',
    prepare: async (world) => posts(world, '/revoke', OPAQUE, (await world.tokens(PLAIN)).access_token, 400),
  },
  {
    name: 'revocation of a refresh token of another client',
    insteadOf: 'revocation of a refresh token',
    prepare: async (world) => posts(world, '/revoke', OPAQUE, (await world.tokens(PLAIN)).refresh_token, 400),
  },
];

export const FULL_REFUSED_ROWS: readonly RefusedRow<ProviderWorld>[] = [
  {
    name: 'client_credentials, everything, replayed assertion and proof',
    insteadOf: 'client_credentials, everything',
    exception: FAILED_AUTHENTICATION,
    prepare: ({ world }) => world.replaying('/token', FULL, MACHINE, 401),
  },
  {
    name: 'refresh, everything, token of another client',
    insteadOf: 'refresh, everything',
    exception: { because: 'an assertion and a proof that are accepted are marked as used', writes: ['SET'] },
    async prepare(full) {
      const { refresh_token: token } = await fullTokens(full, FULL_OPAQUE);
      return await full.world.posting('/token', FULL, refreshing(token), 400);
    },
  },
];
