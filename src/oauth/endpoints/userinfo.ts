// The userinfo endpoint (OpenID Connect Core §5.3): what the client of an access token may know of the person now. It is a
// protected resource whose audience is the issuer: an API cannot learn of people by the tokens that are sent to it.

import { personClaims } from '../access/scope-claims.ts';
import type { ReplayMarks } from '../client-auth/replay-marks.ts';
import { PROOF_ALGORITHM_NAMES } from '../dpop/proof.ts';
import { attributeTo } from '../ports/error.ts';
import type { Client } from '../registry/client.ts';
import type { Registry, RegistryRef } from '../registry/registry.ts';
import { AccessRefused } from '../resource/access-refused.ts';
import { scopeOf } from '../resource/access-token.ts';
import type { BearerError, ChallengeFacts, RefusalCode } from '../resource/bearer-error.ts';
import {
  isBearerError,
  type PresentedCredentials,
  presentedCredentials,
  type RequestParts,
} from '../resource/credentials.ts';
import { type ProvenSender, verifySender } from '../resource/sender-constraint.ts';
import { type PresentedToken, TokenStatus, type TokenStatusOptions } from '../tokens/token-status.ts';
import { type ConfirmationClaim, confirmationClaim } from '../values/confirmation.ts';
import type { EndpointProofs } from './sender-constraint.ts';

/** The scope that userinfo needs. */
export const USERINFO_SCOPE: readonly string[] = ['openid'];

/** What the challenges of userinfo say. */
export function userinfoChallenge(issuer: string): ChallengeFacts {
  return {
    audience: issuer,
    schemes: ['Bearer', 'DPoP'],
    metadataUrl: undefined,
    proofAlgorithms: PROOF_ALGORITHM_NAMES,
  };
}

/** One request to userinfo. */
export interface UserinfoRequest extends RequestParts {
  /** Each DPoP header, as sent. */
  readonly proofs: readonly string[];
  /** The DER of the client certificate; undefined without one. */
  readonly certificate: Uint8Array | undefined;
  /** The IP address of the caller. */
  readonly address: string;
}

/** The answer, and its fields for the request log. */
export interface UserinfoResult {
  /** `sub`, and the claims of the scope about the person as of now. */
  readonly claims: Readonly<Record<string, unknown>>;
  readonly clientId: string;
  readonly scope: readonly string[];
  /** The nonce for the next proof, where the client needs another one (RFC 9449 §8.2). */
  readonly dpopNonce: string | undefined;
}

export interface UserinfoOptions extends TokenStatusOptions {
  readonly issuer: string;
  readonly registry: RegistryRef;
  /** Its `urls` are those of userinfo. */
  readonly proofs: EndpointProofs;
  readonly marks: ReplayMarks;
}

/** An access token that is for userinfo; whether it is revoked is not known yet. */
interface PersonToken {
  readonly presented: PresentedToken;
  readonly client: Client;
  readonly subject: string;
  readonly scope: readonly string[];
  readonly cnf: ConfirmationClaim | undefined;
}

/** Discloses people to the clients that they signed in at. */
export class UserinfoEndpoint {
  readonly #options: UserinfoOptions;
  readonly #status: TokenStatus;

  constructor(options: UserinfoOptions) {
    this.#options = options;
    this.#status = new TokenStatus(options);
  }

  /**
   * @throws AccessRefused for a request without a token that gives access
   * @throws OAuthError invalid_dpop_proof for a proof that was used before; rate_limited when its use cannot be recorded
   * @throws StoreUnavailableError rather than guessing whether the token is revoked
   */
  async handle(request: UserinfoRequest): Promise<UserinfoResult> {
    const snapshot = this.#options.registry.current;
    const credentials = presentedCredentials(request);
    if (isBearerError(credentials)) throw new AccessRefused(credentials);
    const token = await this.#tokenOf(credentials, snapshot);
    const { client, subject, scope } = token;
    const { clientId } = client;
    const refuse = (code: RefusalCode, reason: string) =>
      new AccessRefused({ code, reason, scheme: credentials.scheme }, { clientId });
    const sender = this.#verifySender(credentials, token, request);
    if (isBearerError(sender)) throw new AccessRefused(sender, { clientId });
    const active = await this.#status.activeToken(token.presented, snapshot);
    if (active?.person === undefined) throw refuse('invalid_token', 'token_revoked');
    if (!USERINFO_SCOPE.every((each) => scope.includes(each))) throw refuse('insufficient_scope', 'scope_too_small');
    const dpopNonce = await this.#useProof(sender, client, request);
    return { claims: { ...personClaims(scope, active.person, client), sub: subject }, clientId, scope, dpopNonce };
  }

  async #tokenOf({ token, scheme }: PresentedCredentials, registry: Registry): Promise<PersonToken> {
    const presented = await this.#status.recognise(token, registry);
    const result = verifyToken(presented, registry, this.#options.issuer);
    if (typeof result !== 'string') return result;
    throw new AccessRefused({ code: 'invalid_token', reason: result, scheme });
  }

  #verifySender(
    credentials: PresentedCredentials,
    { cnf }: PersonToken,
    { method, proofs: sent, certificate }: UserinfoRequest,
  ): ProvenSender | BearerError {
    const { proofs, clock } = this.#options;
    const facts = { method, urls: proofs.urls, proofs: sent, certificate, now: clock.now() };
    return verifySender(credentials, { cnf }, facts, { ...proofs, requireBinding: 'None' });
  }

  /** Marks the proof as used. @returns the nonce for the next one, where it needs another */
  async #useProof({ proof }: ProvenSender, client: Client, { address }: UserinfoRequest): Promise<string | undefined> {
    if (proof === undefined) return undefined;
    const { marks, proofs, clock } = this.#options;
    try {
      await marks.claim(client, [{ kind: 'dpop_proof', ...proof.mark }], address);
    } catch (error) {
      throw attributeTo(client.clientId, error);
    }
    const { nonces } = proofs;
    return nonces.rule === 'required' && proof.nonce?.isCurrent === false ? nonces.make(clock.now()) : undefined;
  }
}

/** What the token gives, or why it gives nothing here: the reason for logs. */
function verifyToken(
  presented: PresentedToken | undefined,
  registry: Registry,
  issuer: string,
): PersonToken | 'token_unknown' | 'refresh_token' | 'audience_mismatch' | 'person_missing' | 'client_unknown' {
  if (presented === undefined) return 'token_unknown';
  if (presented.kind === 'refresh') return 'refresh_token';
  const { audience, grantId, client, ...token } = contentOf(presented, registry);
  if (audience !== issuer) return 'audience_mismatch';
  // Without a grant its subject is a client.
  if (grantId === undefined) return 'person_missing';
  if (client === undefined) return 'client_unknown';
  // What the client has lost since the token was made it may not learn from now on.
  return { ...token, scope: token.scope.filter((each) => client.scopes.includes(each)), presented, client };
}

function contentOf(presented: Exclude<PresentedToken, { kind: 'refresh' }>, registry: Registry) {
  if (presented.kind === 'jwt') {
    const { aud, grant_id, client_id, sub, cnf, scope } = presented.claims;
    const client = registry.find(client_id);
    return { audience: aud, grantId: grant_id, client, subject: sub, scope: scopeOf({ scope }), cnf };
  }
  const { audience, grantId, clientUid, subject, scope, confirmation } = presented.token;
  const cnf = confirmation && confirmationClaim(confirmation);
  return { audience, grantId, client: registry.findByUid(clientUid), subject, scope, cnf };
}
