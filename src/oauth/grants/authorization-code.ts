// authorization_code (RFC 6749 §4.1.3) with PKCE for every client (RFC 7636 §4.5): a person has consented, the client
// redeems the code, once. A replay with valid proof revokes everything the code had issued; one without revokes
// nothing.

import { isPublic } from '../client-auth/index.ts';
import type { RedeemAnswer } from '../ports/grant-store.ts';
import { reportedAuthTime } from '../tokens/auth-time.ts';
import type { CodeHandle } from '../tokens/handles.ts';
import { invalidGrant, requireActive, requirePermitted } from '../tokens/revocation-checks.ts';
import { isVerifier, s256 } from '../values/pkce.ts';
import { randomId } from '../values/random-id.ts';
import { matchRedirectUri } from '../values/redirect-uri.ts';
import { accessExceededError, accessRequest } from './access-request.ts';
import { alertEvent } from './alert-event.ts';
import type { GrantContext, GrantRequest, GrantType } from './grant.ts';
import { reportedLogin } from './reported-login.ts';
import { mayRefresh, retentionOf } from './retention.ts';

type RedeemFailure = Exclude<RedeemAnswer, { outcome: 'redeemed' }>;

export const authorizationCode: GrantType = {
  parameters: ['code', 'redirect_uri', 'code_verifier', 'resource'],
  isOfPerson: true,
  async exchange(request, context) {
    const { client, parameters } = request;
    const code = parameters.require('code');
    const redirectUri = parameters.require('redirect_uri');
    const handle = context.handles.parseCode(code);
    if (handle === undefined) throw invalidGrant('code_unknown');
    // RFC 9700 §4.1.3 at both endpoints: an address that left the manifest since is no address of the client.
    if (!matchRedirectUri(redirectUri, client.redirectUris)) throw invalidGrant('redirect_uri_not_registered');

    const answer = await redeem(request, handle, redirectUri, context);
    if (answer.outcome !== 'redeemed') throw await redeemError(answer, request, handle, context);
    const { grant, scope, audience } = answer;
    const person = await context.owners.find(grant.subject);
    requireActive(grant, person, context);
    requirePermitted(client, person);

    const { subject, grantId } = grant;
    const authTime = reportedAuthTime(grant);
    const refreshToken = mayRefresh(client) ? context.handles.refreshToken(handle, 0) : undefined;
    const openid = reportedLogin(grant, undefined, request.access);
    return { subject, scope, audience, grantId, authTime, person, openid, refreshToken };
  },
};

function redeem(
  request: GrantRequest,
  { grantId, secretHash }: CodeHandle,
  redirectUri: string,
  { random, stores }: GrantContext,
): Promise<RedeemAnswer> {
  const { client, parameters, address, accessToken } = request;
  const verifier = parameters.get('code_verifier');
  return stores.grants.redeem({
    grantId,
    secretHash,
    clientUid: client.uid,
    redirectUri,
    confirmation: accessToken.confirmation,
    bindsRefreshTokens: isPublic(client),
    // RFC 7636 §4.1: a malformed value is no verifier; it must not count as a guess.
    verifierChallenge: verifier !== undefined && isVerifier(verifier) ? s256(verifier) : undefined,
    attemptId: randomId(random, 16),
    retention: retentionOf(client),
    access: accessRequest(request, undefined),
    accessToken: accessToken.opaque(grantId),
    revokedBefore: client.revokeTokensBefore,
    address,
  });
}

async function redeemError(
  answer: RedeemFailure,
  request: GrantRequest,
  { grantId }: CodeHandle,
  { audit, stores: { grants } }: GrantContext,
): Promise<Error> {
  switch (answer.outcome) {
    case 'replayed':
      if (answer.alert) audit.record(alertEvent('authorization_code.replayed', answer.alert, request.address));
      return invalidGrant('code_replayed');
    case 'scope_exceeded':
    case 'target_exceeded':
      return await accessExceededError(answer.outcome, request, { grantId, asked: undefined, grants });
    case 'gone':
      return invalidGrant('code_gone');
    case 'no_match':
      return invalidGrant('code_mismatch');
    case 'bad_proof':
      return invalidGrant('code_proof_mismatch');
    case 'wrong_verifier':
      return invalidGrant('verifier_mismatch');
    case 'ended':
      return invalidGrant('grant_before_watermark');
  }
}
