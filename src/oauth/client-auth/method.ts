// What a client authentication method is. The table of those that exist is `index.ts`; the order of the checks around
// them (one method only, limits, same answer for every failure) is `./client-authentication.ts`.

import type { Client } from '../registry/client.ts';
import type { Parameters } from '../values/parameters.ts';

/** The part of a request a method may look at. */
export interface Credentials {
  readonly parameters: Parameters;
  /** The Authorization header as sent; undefined when absent. */
  readonly authorization: string | undefined;
}

/** One try to authenticate, read from the request without judging it. */
export interface Attempt {
  /** The client the request claims to come from; undefined when it names none, or is malformed. */
  readonly clientId: string | undefined;
  /** Set when the credentials cannot be read; the try then fails with this reason. */
  readonly malformed?: string;
  /**
   * Judges the credentials. Called with undefined for a client that is unknown or registered for another method, and then
   * does the same work and answers false.
   */
  verify(client: Client | undefined): boolean | Promise<boolean>;
}

/** A way for a client to prove who it is (RFC 6749 §2.3). */
export interface ClientAuthMethod {
  /** Whether it proves anything. One that does not is only a try when no other is made, and may not introspect. */
  readonly confidential: boolean;
  /** Whether it reads the Authorization header; a header that no method of a request reads is a try of its own. */
  readonly usesHeader: boolean;
  /** Whether what it judges is a client secret, so that one must be generated or given. */
  readonly usesSecret: boolean;
  /** The form parameters it reads beside `client_id`. */
  readonly parameters: readonly string[];
  /** The try this request makes by this method; undefined when it makes none. */
  attempt(credentials: Credentials): Attempt | undefined;
}
