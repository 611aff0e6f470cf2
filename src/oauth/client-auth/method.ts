// The interface of a client authentication method. The table of methods is `index.ts`; the checks around them (one
// method only, limits, same answer for every failure) are in `client-authentication.ts`.

import type { Client } from '../registry/client.ts';
import type { Parameters } from '../values/parameters.ts';

/** The part of a request that a method may read. */
export interface Credentials {
  readonly parameters: Parameters;
  /** The Authorization header as sent; undefined when absent. */
  readonly authorization: string | undefined;
}

/** One attempt to authenticate, read from the request and not yet verified. */
export interface Attempt {
  /** The client the request claims to come from; undefined when it names none, or is malformed. */
  readonly clientId: string | undefined;
  /** Set when the credentials cannot be read; the attempt then fails with this reason. */
  readonly malformed?: string;
  /**
   * Verifies the credentials. Called with undefined for a client that is unknown or registered for another method; it
   * then does the same work and answers false.
   */
  verify(client: Client | undefined): boolean | Promise<boolean>;
}

/** A method by which a client proves its identity (RFC 6749 §2.3). */
export interface ClientAuthMethod {
  /**
   * Whether it proves the client's identity. One that does not counts only if no other is used; its clients may not
   * introspect.
   */
  readonly confidential: boolean;
  /** Whether it reads the Authorization header; a header that no method of a request reads counts as an attempt. */
  readonly usesHeader: boolean;
  /** Whether its credential is a client secret, so that one must be generated or provided. */
  readonly usesSecret: boolean;
  /** The form parameters it reads beside `client_id`. */
  readonly parameters: readonly string[];
  /** The attempt that this request makes with this method; undefined when it makes none. */
  attempt(credentials: Credentials): Attempt | undefined;
}
