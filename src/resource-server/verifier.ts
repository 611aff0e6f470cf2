// The verifier of an API: one request in, the access or the refusal out.

import { hash } from 'node:crypto';
import { PROOF_ALGORITHM_NAMES, ProofVerifier } from '../oauth/dpop/proof.ts';
import { AccessRefused } from '../oauth/resource/access-refused.ts';
import { type AccessClaims, scopeOf } from '../oauth/resource/access-token.ts';
import { bearerErrorAnswer, type ChallengeFacts, type Scheme } from '../oauth/resource/bearer-error.ts';
import { isBearerError, type PresentedCredentials, presentedCredentials } from '../oauth/resource/credentials.ts';
import { targetAddresses } from '../oauth/resource/request-target.ts';
import { type ProvenSender, verifySender } from '../oauth/resource/sender-constraint.ts';
import { type Access, accessFrom } from './access.ts';
import { AccessDenied, InvalidTokenError, UnavailableError } from './access-denied.ts';
import { type ApiRequest, readRequest } from './api-request.ts';
import { IntrospectedTokens } from './introspection.ts';
import { IssuerKeys } from './issuer-keys.ts';
import { LocalTokens, type TokenSource } from './local-tokens.ts';
import { type Settings, settingsOf, type VerifierOptions } from './options.ts';
import { MemoryReplays, type ReplayStore } from './replays.ts';

/** What a request needs. */
export interface Needs {
  /** Scopes, all of which the token must have: a list, or a text with spaces between. Default: none. */
  readonly scope?: string | readonly string[] | undefined;
  /** The form of a node:http request, where no body parser has put it at `body`: text, bytes or its parameters. */
  readonly form?: unknown;
}

/**
 * What a request needs, as it is given.
 * @throws TypeError for anything else, such as a misspelt name: it would ask for no scope
 */
export function checkedNeeds(needs: Needs): Needs {
  if (typeof needs !== 'object' || Object.keys(needs).some((name) => name !== 'scope' && name !== 'form')) {
    throw new TypeError('needs is not of the form { scope, form }');
  }
  return needs;
}

/** Checks the requests of one API. */
export interface Verifier {
  /** Whether tokens may come in forms: then the body has to be read before. */
  readonly formBody: boolean;
  /**
   * The access of a request.
   * @throws AccessDenied with the whole answer; TypeError for needs of another form
   */
  verify(request: ApiRequest, needs?: Needs): Promise<Access>;
}

/**
 * Makes the verifier of one API. It calls nothing before the first request.
 * @throws TypeError for options that cannot be right
 */
export function createVerifier(options: VerifierOptions): Verifier {
  return new ApiVerifier(options);
}

class ApiVerifier implements Verifier {
  readonly formBody: boolean;
  readonly #options: VerifierOptions;
  readonly #settings: Settings;
  readonly #tokens: TokenSource;
  readonly #replays: ReplayStore;
  readonly #facts: ChallengeFacts;
  readonly #proofs = new ProofVerifier();

  constructor(options: VerifierOptions) {
    const settings = settingsOf(options);
    const { clock, fetch, formBody, metadataUrl } = settings;
    const { issuer, audience } = options;
    this.formBody = formBody;
    this.#options = options;
    this.#settings = settings;
    this.#tokens =
      options.mode === 'introspection'
        ? new IntrospectedTokens({ issuer, options: options.introspection, clock, fetch })
        : new LocalTokens({ keys: new IssuerKeys({ issuer, clock, fetch }) });
    this.#replays = options.replays ?? new MemoryReplays({ clock });
    this.#facts = { audience, schemes: schemesOf(settings), metadataUrl, proofAlgorithms: PROOF_ALGORITHM_NAMES };
  }

  async verify(request: ApiRequest, needs: Needs = {}): Promise<Access> {
    const { scope: needed, form } = checkedNeeds(needs);
    const scope = typeof needed === 'string' ? needed.split(' ').filter((value) => value !== '') : (needed ?? []);
    try {
      return await this.#verify(request, scope, form);
    } catch (error) {
      if (!(error instanceof AccessRefused)) throw error;
      const { bearerError, cause } = error;
      throw new AccessDenied(bearerErrorAnswer(bearerError, scope, this.#facts), {
        code: bearerError.code,
        reason: bearerError.reason,
        cause,
      });
    }
  }

  async #verify(request: ApiRequest, scope: readonly string[], form: unknown): Promise<Access> {
    const read = await readRequest(request, { formBody: this.formBody, form });
    const credentials = presentedCredentials(read);
    if (isBearerError(credentials)) throw new AccessRefused(credentials);
    const claims = await this.#claimsOf(credentials);
    const sender = verifySender(
      credentials,
      claims,
      {
        method: read.method,
        urls: targetAddresses(this.#settings.origins, read.path),
        proofs: read.proofs,
        certificate: this.#options.certificate?.(request),
        now: this.#settings.clock.now(),
      },
      { verifier: this.#proofs, nonces: this.#settings.nonces, requireBinding: this.#settings.requireBinding },
    );
    if (isBearerError(sender)) throw new AccessRefused(sender);
    await this.#claimProof(sender);
    const { scheme } = credentials;
    const held = scopeOf(claims);
    if (!scope.every((value) => held.includes(value))) {
      throw new AccessRefused({ code: 'insufficient_scope', reason: 'scope_too_small', scheme });
    }
    return accessFrom(claims, this.#responseHeaders(credentials, sender));
  }

  async #claimsOf({ token, scheme }: PresentedCredentials): Promise<AccessClaims> {
    const { issuer, audience } = this.#options;
    const { clock, toleranceSeconds } = this.#settings;
    try {
      return await this.#tokens.claimsOf(token, { issuer, audience, now: clock.now(), toleranceSeconds });
    } catch (error) {
      const code = error instanceof InvalidTokenError ? 'invalid_token' : 'unavailable';
      if (!(error instanceof InvalidTokenError || error instanceof UnavailableError)) throw error;
      throw new AccessRefused({ code, reason: error.reason, scheme }, { cause: error.cause });
    }
  }

  async #claimProof({ proof }: ProvenSender): Promise<void> {
    if (proof === undefined) return;
    const { value, expiresAt } = proof.mark;
    const isFresh = await this.#claimed(hash('sha256', value, 'base64url'), expiresAt);
    if (!isFresh)
      throw new AccessRefused({ code: 'invalid_dpop_proof', reason: 'dpop_proof_replayed', scheme: 'DPoP' });
  }

  async #claimed(id: string, expiresAt: number): Promise<boolean> {
    try {
      return await this.#replays.claim(id, expiresAt);
    } catch (error) {
      const reason = error instanceof UnavailableError ? error.reason : 'replays_unavailable';
      throw new AccessRefused({ code: 'unavailable', reason, scheme: 'DPoP' }, { cause: error });
    }
  }

  #responseHeaders({ transport }: PresentedCredentials, { proof }: ProvenSender): Readonly<Record<string, string>> {
    const { nonces, clock } = this.#settings;
    const needsNonce = nonces.rule === 'required' && proof?.nonce?.isCurrent === false;
    return Object.freeze(
      Object.fromEntries([
        // RFC 6750 §2.2 has no better place for a token than the body, and caches know nothing of it.
        ...(transport === 'form' ? [['cache-control', 'no-store'] as const] : []),
        ...(needsNonce ? [['dpop-nonce', nonces.make(clock.now())] as const] : []),
      ]),
    );
  }
}

/** The schemes that the API takes. Certificate-bound tokens are bearer tokens on the wire (RFC 8705 §3). */
function schemesOf({ origins, requireBinding }: Settings): readonly Scheme[] {
  if (requireBinding === 'DPoP') return ['DPoP'];
  return origins.length === 0 || requireBinding === 'MutualTLS' ? ['Bearer'] : ['Bearer', 'DPoP'];
}
