// refresh_token (RFC 6749 §6): the client renews its access. Each use rotates the token; the successor is derived, so a lost
// response is answered again with the same one. A token older than that revokes the family and raises one alert.

import { parseScope } from '../access/scope.ts';
import { isPublic } from '../client-auth/index.ts';
import { OAuthError, StoreUnavailableError } from '../ports/error.ts';
import type { RotateAnswer } from '../ports/grant-store.ts';
import type { Client } from '../registry/client.ts';
import { reportedAuthTime } from '../tokens/auth-time.ts';
import type { RefreshHandle } from '../tokens/handles.ts';
import { invalidGrant, requireActive, requirePermitted } from '../tokens/revocation-checks.ts';
import { areInDifferentNetworks } from '../values/network.ts';
import { randomId } from '../values/random-id.ts';
import { accessExceededError, accessRequest } from './access-request.ts';
import { alertEvent } from './alert-event.ts';
import type { GrantContext, GrantRequest, GrantType } from './grant.ts';
import { reportedLogin } from './reported-login.ts';
import { retentionOf } from './retention.ts';

type Renewal = Extract<RotateAnswer, { generation: number }>;
type RotateFailure = Exclude<RotateAnswer, Renewal>;

export const refreshToken: GrantType = {
  parameters: ['refresh_token', 'scope', 'resource'],
  isOfPerson: true,
  async exchange(request, context) {
    const presented = request.parameters.require('refresh_token');
    const handle = context.handles.parseRefreshToken(presented);
    if (handle === undefined) throw invalidGrant('refresh_token_unknown');

    // A grant that a kill switch ended, or that a limit of the client stops, must neither rotate nor raise an alert. The
    // check of the kill switch runs again after the rotation, for a person who is disabled meanwhile.
    const owner = await context.stores.grants.subjectOf(handle.grantId);
    if (owner === undefined) throw invalidGrant('refresh_token_gone');
    const person = await context.owners.find(owner);
    if (person === undefined) throw invalidGrant('subject_inactive');
    requirePermitted(request.client, person);
    const revokedBefore = context.owners.revokedBefore(person);
    const waitSeconds = context.limits.people.take(request.client.uid, owner);
    if (waitSeconds > 0) throw limited(waitSeconds);
    const answer = await rotate(request, handle, { subject: owner, revokedBefore }, context);
    if (!('generation' in answer)) throw await rotateError(answer, request, handle, context);
    requireActive(answer.grant, person, context);

    note(answer, request, context);
    if (answer.outcome === 'benign_retry') await noteElsewhere(answer, handle, request, context);
    const { grant, scope, audience } = answer;
    const { subject, grantId } = grant;
    const authTime = reportedAuthTime(grant);
    const openid = reportedLogin(grant, requestedScope(request.parameters.get('scope')), request.access);
    const successor = context.handles.refreshToken(handle, answer.generation);
    return { subject, scope, audience, grantId, authTime, person, openid, refreshToken: successor };
  },
};

function rotate(
  request: GrantRequest,
  { grantId, generation }: RefreshHandle,
  owner: { readonly subject: string; readonly revokedBefore: number },
  { random, stores }: GrantContext,
): Promise<RotateAnswer> {
  const { client, parameters, address, accessToken } = request;
  const { tokens } = client;
  return stores.grants.rotate({
    grantId,
    clientUid: client.uid,
    generation,
    confirmation: accessToken.confirmation,
    isPublic: isPublic(client),
    rotation: tokens.refreshTokenRotation,
    reuseGrace: 1000 * tokens.refreshTokenReuseGraceSeconds,
    idleLifetime: 1000 * tokens.refreshTokenIdleLifetimeSeconds,
    absoluteLifetime: 1000 * tokens.refreshTokenLifetimeSeconds,
    retention: retentionOf(client),
    attemptId: randomId(random, 16),
    access: accessRequest(request, requestedScope(parameters.get('scope'))),
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
    throw new OAuthError('invalid_scope', 'scope is malformed.', { reason: 'scope_malformed' });
  }
  return scope;
}

async function rotateError(
  answer: RotateFailure,
  request: GrantRequest,
  { grantId }: RefreshHandle,
  { audit, stores: { grants } }: GrantContext,
): Promise<Error> {
  switch (answer.outcome) {
    case 'reused':
      if (answer.alert) audit.record(alertEvent('refresh_token.reuse_detected', answer.alert, request.address));
      return invalidGrant('refresh_token_reused');
    case 'scope_exceeded':
    case 'target_exceeded': {
      const asked = requestedScope(request.parameters.get('scope'));
      return await accessExceededError(answer.outcome, request, { grantId, asked, grants });
    }
    case 'gone':
      return invalidGrant('refresh_token_gone');
    case 'bad_proof':
      return invalidGrant('refresh_token_key_mismatch');
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
    const lastAddress = addressElsewhere(answer, client, address);
    audit.record({ type: 'refresh_token.retried', clientId: client.clientId, subject, grantId, address, lastAddress });
  }
}

/** Records a retry from another network in the store, which raises an alert after several of them. */
async function noteElsewhere(
  answer: Renewal,
  { grantId, generation }: RefreshHandle,
  { client, address }: GrantRequest,
  { audit, stores }: GrantContext,
): Promise<void> {
  const rotatedFrom = addressElsewhere(answer, client, address);
  if (rotatedFrom === undefined) return;
  // A refusal here would be harm: by the time of the next retry the grace may be over.
  const recorded = stores.grants.noteRetryElsewhere({ grantId, generation, address, rotatedFrom });
  const alert = await recorded.catch((error: unknown) => {
    if (!(error instanceof StoreUnavailableError)) throw error;
  });
  if (alert) audit.record(alertEvent('refresh_token.retried_elsewhere', alert, address));
}

/**
 * The address of the rotation, where a public client retries from another network: the holder of a copied token could
 * retry so. Undefined otherwise, and for clients with credentials, which prove themselves anyway.
 */
function addressElsewhere({ rotatedFrom }: Renewal, client: Client, address: string): string | undefined {
  if (rotatedFrom === undefined || !isPublic(client)) return undefined;
  return areInDifferentNetworks(address, rotatedFrom) ? rotatedFrom : undefined;
}
