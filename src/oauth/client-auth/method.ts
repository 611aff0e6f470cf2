// The interface of a client authentication method. The table of methods is `index.ts`; `tries.ts` finds the one that a
// request tries, and the checks around it (limits, same answer for every failure) are in `client-authentication.ts`.

import type { CertificateVerifier } from '../client-certificates/certificate-verifier.ts';
import type { ClusterIssuer } from '../ports/cluster-issuer.ts';
import type { KeySets } from '../ports/key-sets.ts';
import type { Clock } from '../ports/ports.ts';
import type { Client } from '../registry/client.ts';
import type { VerificationKey } from '../values/jwk.ts';
import type { Parameters } from '../values/parameters.ts';

/** The leaf certificate that the caller has proven to hold, not verified yet. */
export interface PresentedCertificate {
  readonly der: Uint8Array;
}

/** The part of a request that a method may read. */
export interface Credentials {
  readonly parameters: Parameters;
  /** The Authorization header as sent; undefined when absent. */
  readonly authorization: string | undefined;
  /** Undefined where the caller has presented none, or its connection proves nothing. */
  readonly certificate: PresentedCertificate | undefined;
  /** The DPoP header as sent; undefined when absent. Several are joined by commas. */
  readonly proof: string | undefined;
}

/** What the verification of a credential reads beside the request and the client. */
export interface VerificationContext {
  readonly issuer: string;
  /** The URL of the token endpoint. */
  readonly tokenEndpoint: string;
  readonly clock: Clock;
  /** Undefined where mutual TLS is not configured: no client has a method that needs it then. */
  readonly certificates: CertificateVerifier | undefined;
  /** The issuer of ServiceAccount tokens. */
  readonly clusterIssuer: ClusterIssuer<VerificationKey>;
  /** The keys of clients that publish them at an address of their own. */
  readonly keySets: KeySets<VerificationKey>;
}

/** A credential that was used just now, and must not be used again. */
export interface ReplayMark {
  readonly kind: 'client_assertion' | 'dpop_proof';
  /** Unique within its kind: an id of the credential together with that of its issuer or key. */
  readonly value: string;
  /**
   * Epoch milliseconds: its `iat`, by the clock of its issuer, or from when on it would have been accepted. A store that lost its
   * state then or later refuses it (docs/adr/0054).
   */
  readonly issuedAt: number;
  /** Epoch milliseconds: from then on the credential is refused for its age. */
  readonly expiresAt: number;
}

/** Whether a credential is the client's. `reason` is a slug for logs and metrics. */
export type Verification =
  | {
      readonly ok: true;
      /** Set for a credential that can be used once. */
      readonly mark?: ReplayMark;
      /** Whether an assertion named the token endpoint in place of the issuer. */
      readonly isLegacyAudience?: boolean;
    }
  | { readonly ok: false; readonly reason: string };

/** One attempt to authenticate, read from the request and not yet verified. */
export interface ClientAuthAttempt {
  /** The client the request claims to come from; undefined when it names none, or is malformed. */
  readonly clientId: string | undefined;
  /** Set when the credentials cannot be read; the attempt then fails with this reason. */
  readonly malformed?: string;
  /**
   * Verifies the credentials. Called with undefined for a client that is unknown or registered for another method; it
   * then does the same work and fails.
   * @throws OAuthError temporarily_unavailable where what the client registered cannot be read now
   */
  verify(client: Client | undefined, context: VerificationContext): Verification | Promise<Verification>;
}

/** A method by which a client proves its identity (RFC 6749 §2.3). */
export interface ClientAuthMethod {
  /** Whether it proves the client's identity. Clients of one that does not may not introspect. */
  readonly confidential: boolean;
  /**
   * Whether its attempt is a `client_id` and nothing else of the request. Such attempts count only if there is no explicit
   * one, and of several the one that is registered.
   */
  readonly implicit: boolean;
  /** Whether it reads the Authorization header; a header that no method of a request reads is an attempt. */
  readonly usesHeader: boolean;
  /** Whether its credential is a client secret, so that one must be generated or provided. */
  readonly usesSecret: boolean;
  /** Whether its credential is a client certificate, which only mutual TLS can present. */
  readonly usesCertificate: boolean;
  /** The JWS algorithms by which its clients may sign, as metadata lists them; empty where they sign nothing. */
  readonly signingAlgorithms: readonly string[];
  /** The form parameters it reads beside `client_id`. */
  readonly parameters: readonly string[];
  /** The attempt that this request makes with this method; undefined when it makes none. */
  attempt(credentials: Credentials): ClientAuthAttempt | undefined;
}
