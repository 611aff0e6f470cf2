// refresh_token (RFC 6749 §6): the client renews its access. Each use rotates the token; the successor is derived, so a lost
// response is answered again with the same one. A token older than that revokes the family and raises one alert.

import { parseScope } from '../access/scope.ts';
import { OAuthError } from '../ports/error.ts';
import type { RotateAnswer } from '../ports/grant-store.ts';
import type { RefreshHandle } from '../tokens/handles.ts';
import { invalidGrant, requireActive } from '../tokens/revocation-checks.ts';
import { randomId } from '../values/random-id.ts';
import { accessExceededError, accessRequest } from './access-request.ts';
import { alertEvent } from './alert-event.ts';
import type { GrantContext, GrantRequest, GrantType } from './grant.ts';
import { retentionOf } from './retention.ts';

type Renewal = Extract<RotateAnswer, { generation: number }>;
type Refusal = Exclude<RotateAnswer, Renewal>;

export const refreshToken: GrantType = {
  parameters: ['refresh_token', 'scope', 'resource'],
  async exchange(request, context) {
    const presented = request.parameters.require('refresh_token');
    const handle = context.handles.parseRefreshToken(presented);
    if (handle === undefined) throw invalidGrant('refresh_token_unknown');

    // A grant that a kill switch ended must neither rotate nor raise an alert. The check runs again after the rotation,
    // for a person who is disabled meanwhile.
    const owner = await context.stores.grants.subjectOf(handle.grantId);
    if (owner === undefined) throw invalidGrant('refresh_token_gone');
    const revokedBefore = context.owners.revokedBefore(owner);
    if (revokedBefore === Number.POSITIVE_INFINITY) throw invalidGrant('subject_inactive');
    const waitSeconds = context.limits.people.take(request.client.uid, owner);
    if (waitSeconds > 0) throw limited(waitSeconds);
    const answer = await rotate(request, handle, { subject: owner, revokedBefore }, context);
    if (!('generation' in answer)) throw refusal(answer, request, context);
    requireActive(answer.grant, context);

    note(answer, request, context);
    const { subject, grantId, authTime } = answer.grant;
    const successor = context.handles.refreshToken(handle, answer.generation);
    return { subject, scope: answer.scope, audience: answer.audience, grantId, authTime, refreshToken: successor };
  },
};

function rotate(
  { client, parameters, address, accessToken }: GrantRequest,
  { grantId, generation }: RefreshHandle,
  owner: { readonly subject: string; readonly revokedBefore: number },
  { random, stores }: GrantContext,
): Promise<RotateAnswer> {
  const { tokens } = client;
  return stores.grants.rotate({
    grantId,
    clientUid: client.uid,
    generation,
    rotation: tokens.refreshTokenRotation,
    reuseGrace: 1000 * tokens.refreshTokenReuseGraceSeconds,
    idleLifetime: 1000 * tokens.refreshTokenIdleLifetimeSeconds,
    absoluteLifetime: 1000 * tokens.refreshTokenLifetimeSeconds,
    retention: retentionOf(client),
    attemptId: randomId(random, 16),
    access: accessRequest(client, parameters, requestedScope(parameters.get('scope'))),
    accessToken: accessToken.opaque(grantId),
    revokedBefore: Math.max(client.revokeTokensBefore, owner.revokedBefore),
    address,
    subject: owner.subject,
  });
}

function requestedScope(value: string | undefined): readonly string[] | undefined {
  if (value === undefined) return undefined;
  const scope = parseScope(value);
  if (scope === undefined) {
    throw new OAuthError('invalid_scope', 'The scope is malformed.', { reason: 'scope_malformed' });
  }
  return scope;
}

function refusal(answer: Refusal, { address }: GrantRequest, { audit }: GrantContext): Error {
  switch (answer.outcome) {
    case 'reused':
      if (answer.alert) audit.record(alertEvent('refresh_token.reuse_detected', answer.alert, address));
      return invalidGrant('refresh_token_reused');
    case 'scope_exceeded':
    case 'target_exceeded':
      return accessExceededError(answer.outcome);
    case 'gone':
      return invalidGrant('refresh_token_gone');
    case 'no_match':
      return invalidGrant('refresh_token_mismatch');
    case 'ended':
      return invalidGrant('grant_before_watermark');
  }
}

function limited(retryAfterSeconds: number): OAuthError {
  const details = { reason: 'person_rate_limited', retryAfterSeconds };
  return new OAuthError('rate_limited', 'Too many refreshes for one person.', details);
}

function note(answer: Renewal, { client, address }: GrantRequest, { audit }: GrantContext): void {
  if (answer.alert) audit.record(alertEvent('state_lost', answer.alert, address));
  if (answer.outcome === 'benign_retry') {
    const { subject, grantId } = answer.grant;
    audit.record({ type: 'refresh_token.retried', clientId: client.clientId, subject, grantId, address });
  }
}
