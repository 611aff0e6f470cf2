// What must become of grants, defined without any code of the server: a list of codes, the tokens that came of them, and for
// each request the answer it must get. The model-based run compares the server with it.

import { bindsToKeys, type CastName, isConfidential, type KeyName, tokenSettingsOf } from './protocol-world.ts';

const CODE_LIFETIME = 60_000;
const MAX_WRONG_VERIFIERS = 5;

export interface ModelAccessToken {
  readonly token: string;
  readonly scope: string;
  /** The key that it is bound to. */
  readonly key: KeyName | undefined;
  readonly expiresAt: number;
  revoked: boolean;
}

export interface ModelRefreshToken {
  readonly token: string;
  readonly generation: number;
}

/** One authorization, from its code to its last token. */
export interface ModelGrant {
  readonly name: number;
  readonly client: CastName;
  readonly scope: readonly string[];
  /** The key that its code is bound to (`dpop_jkt`). */
  readonly codeKey: KeyName | undefined;
  /** The key that its refresh tokens are bound to: that of the redemption, where the client is public. */
  refreshKey: KeyName | undefined;
  readonly code: string;
  readonly verifier: string;
  readonly createdAt: number;
  wrongVerifiers: number;
  redemptions: number;
  revoked: boolean;
  /** Undefined until the code is redeemed. */
  generation: number | undefined;
  refreshedAt: number;
  replacedAt: number | undefined;
  readonly accessTokens: ModelAccessToken[];
  /** Every one a client, or an eavesdropper, has ever seen. */
  readonly refreshTokens: ModelRefreshToken[];
  readonly alerts: string[];
  /** The store has lost it, or may not trust what it has: a code from before a fail-over. */
  lost: boolean;
}

/** The world as it must be. */
export interface Model {
  now: number;
  readonly grants: ModelGrant[];
  /** When the person last took a client's access back. */
  readonly withdrawnAt: Map<CastName, number>;
  /** When the store was last found empty. */
  emptiedAt: number;
}

/** A refusal, or what the good answer does. */
export type Verdict =
  | { readonly error: string; readonly reason: string }
  | { readonly good: 'redeemed' | 'rotated' | 'retried'; readonly generation: number };

export function newModel(now: number): Model {
  return { now, grants: [], withdrawnAt: new Map(), emptiedAt: 0 };
}

/** Whether the store need not remember the grant any more: nothing of it can be alive. */
function isForgotten(grant: ModelGrant, now: number): boolean {
  const settings = tokenSettingsOf(grant.client);
  const tokens = 1000 * (settings.refreshTokenLifetimeSeconds + settings.accessTokenLifetimeSeconds);
  return grant.lost || now >= grant.createdAt + CODE_LIFETIME + (grant.generation === undefined ? 0 : tokens);
}

function isWithdrawn(model: Model, grant: ModelGrant): boolean {
  return grant.createdAt <= Math.max(model.withdrawnAt.get(grant.client) ?? 0, model.emptiedAt);
}

/** Another server is the primary now: nothing is lost, but it cannot know which codes have been redeemed elsewhere. */
export function failOver(model: Model): void {
  for (const grant of model.grants) grant.lost ||= grant.generation === undefined;
}

/** The store has lost everything, and a global watermark ends everything from before. */
export function beEmptied(model: Model): void {
  for (const grant of model.grants) grant.lost = true;
  model.emptiedAt = model.now;
}

function refreshIsOver(grant: ModelGrant, now: number): boolean {
  const { refreshTokenIdleLifetimeSeconds, refreshTokenLifetimeSeconds } = tokenSettingsOf(grant.client);
  const idle = now >= grant.refreshedAt + 1000 * refreshTokenIdleLifetimeSeconds;
  return idle || now >= grant.createdAt + 1000 * refreshTokenLifetimeSeconds;
}

/** Whether the grant as a whole can still give or hold tokens. */
function isDead(model: Model, grant: ModelGrant): boolean {
  return grant.revoked || isWithdrawn(model, grant) || isForgotten(grant, model.now);
}

export function accessTokenLives(model: Model, grant: ModelGrant, token: ModelAccessToken): boolean {
  return !isDead(model, grant) && !token.revoked && model.now < token.expiresAt;
}

export function refreshTokenLives(model: Model, grant: ModelGrant, token: ModelRefreshToken): boolean {
  return !isDead(model, grant) && token.generation === grant.generation && !refreshIsOver(grant, model.now);
}

/** What a request is refused for before its grant is read: the client must bind, and there is no proof. */
function lacksProof({ client, key }: { readonly client: CastName; readonly key: KeyName | undefined }): boolean {
  return bindsToKeys(client) && key === undefined;
}

const proofMissing = { error: 'invalid_dpop_proof', reason: 'dpop_proof_missing' } as const;
const gone = { error: 'invalid_grant', reason: 'code_gone' } as const;

/** The expected answer to a redemption, which moves the grant. */
export function redeem(
  model: Model,
  grant: ModelGrant,
  sent: {
    client: CastName;
    verifier: 'right' | 'wrong' | 'none';
    redirectUri: 'right' | 'wrong';
    key: KeyName | undefined;
  },
): Verdict {
  if (lacksProof(sent)) return proofMissing;
  if (isForgotten(grant, model.now) || grant.revoked || grant.wrongVerifiers >= MAX_WRONG_VERIFIERS) return gone;
  if (sent.client !== grant.client) return { error: 'invalid_grant', reason: 'code_mismatch' };
  const redeemed = grant.generation !== undefined;
  const isKeyWrong = grant.codeKey !== undefined && grant.codeKey !== sent.key;
  if (
    isKeyWrong ||
    sent.redirectUri === 'wrong' ||
    sent.verifier === 'none' ||
    (sent.verifier === 'wrong' && redeemed)
  ) {
    return { error: 'invalid_grant', reason: 'code_proof_mismatch' };
  }
  if (sent.verifier === 'wrong') {
    grant.wrongVerifiers += 1;
    return { error: 'invalid_grant', reason: 'verifier_mismatch' };
  }
  if (redeemed) {
    grant.revoked = true;
    grant.alerts.push('authorization_code.replayed');
    return { error: 'invalid_grant', reason: 'code_replayed' };
  }
  grant.generation = 0;
  grant.refreshKey = isConfidential(grant.client) ? undefined : sent.key;
  grant.refreshedAt = model.now;
  if (isWithdrawn(model, grant)) return { error: 'invalid_grant', reason: 'grant_before_watermark' };
  return { good: 'redeemed', generation: 0 };
}

/** The expected answer to a refresh, which moves the grant. */
export function refresh(
  model: Model,
  grant: ModelGrant,
  sent: { client: CastName; generation: number; scope: readonly string[] | undefined; key: KeyName | undefined },
): Verdict {
  if (lacksProof(sent)) return proofMissing;
  const refused = { error: 'invalid_grant', reason: 'refresh_token_gone' };
  if (isForgotten(grant, model.now)) return refused;
  if (sent.client !== grant.client) return { error: 'invalid_grant', reason: 'refresh_token_mismatch' };
  if (isWithdrawn(model, grant)) return { error: 'invalid_grant', reason: 'grant_before_watermark' };
  if (grant.generation === undefined || grant.revoked || refreshIsOver(grant, model.now)) return refused;

  if (grant.refreshKey !== undefined && grant.refreshKey !== sent.key) {
    return { error: 'invalid_grant', reason: 'refresh_token_key_mismatch' };
  }

  const { refreshTokenRotation, refreshTokenReuseGraceSeconds } = tokenSettingsOf(grant.client);
  const isCurrent = sent.generation === grant.generation;
  const isPredecessor = sent.generation === grant.generation - 1 && grant.replacedAt !== undefined;
  const sinceReplaced = model.now - (grant.replacedAt ?? 0);
  const inGrace = refreshTokenReuseGraceSeconds > 0 && sinceReplaced <= 1000 * refreshTokenReuseGraceSeconds;
  if (!isCurrent && !(isPredecessor && inGrace)) {
    grant.revoked = true;
    grant.alerts.push('refresh_token.reuse_detected');
    return { error: 'invalid_grant', reason: 'refresh_token_reused' };
  }
  if (sent.scope && !sent.scope.every((token) => grant.scope.includes(token))) {
    return { error: 'invalid_scope', reason: 'scope_exceeded' };
  }
  if (!isCurrent) return { good: 'retried', generation: grant.generation };
  grant.refreshedAt = model.now;
  if (refreshTokenRotation === 'Always') {
    grant.generation += 1;
    grant.replacedAt = model.now;
  }
  return { good: 'rotated', generation: grant.generation };
}

/** Revokes a refresh token of any generation and moves the grant. */
export function revokeRefreshToken(model: Model, grant: ModelGrant, client: CastName): Verdict | { revoked: true } {
  if (isForgotten(grant, model.now)) return { revoked: true };
  if (client !== grant.client) return { error: 'invalid_request', reason: 'token_of_another_client' };
  grant.revoked = true;
  return { revoked: true };
}

/** Revokes an access token and moves it. */
export function revokeAccessToken(
  model: Model,
  grant: ModelGrant,
  token: ModelAccessToken,
  client: CastName,
): Verdict | { revoked: true } {
  // A revoked or lost opaque token is unknown; a revoked JWT is still recognised as a client's.
  const unknown = (token.revoked || grant.lost) && tokenSettingsOf(grant.client).accessTokenFormat === 'opaque';
  if (model.now >= token.expiresAt || unknown) return { revoked: true };
  if (client !== grant.client) return { error: 'invalid_request', reason: 'token_of_another_client' };
  token.revoked = true;
  return { revoked: true };
}
