// What clients of all replicas asked and saw, what happened to Redis meanwhile, and what the audit streams said. All times
// are milliseconds of one clock, that of the process the clients run in.

/** What came of one request: the words are the client's, not the server's. */
export type Seen =
  /** Tokens; `generation` is that of the new refresh token. */
  | { readonly kind: 'granted'; readonly generation: number }
  /** `invalid_grant`. */
  | { readonly kind: 'refused' }
  /** A revocation was called done. */
  | { readonly kind: 'revoked' }
  | { readonly kind: 'active' }
  | { readonly kind: 'inactive' }
  /** 503. */
  | { readonly kind: 'unavailable' }
  /** No answer. */
  | { readonly kind: 'lost' }
  /** Anything that no fault excuses. */
  | { readonly kind: 'unexpected'; readonly what: string };

/** One request and its answer. */
export interface Operation {
  readonly kind: 'redeem' | 'refresh' | 'revoke' | 'introspect';
  readonly grantId: string;
  readonly replica: string;
  /** Of the presented refresh token; undefined for codes and access tokens. */
  readonly generation: number | undefined;
  /**
   * `misuse`: a code that was sent before, or a token that is neither the newest nor the one before it: what it is done
   * to kills the family. `honest`: everything else, retries of a refresh included.
   */
  readonly intent: 'honest' | 'misuse';
  /** What it cannot be answered without: the shards of the grant, of its client, and of the mark that revokes a JWT. */
  readonly shards: readonly string[];
  /** When what is presented had been given to the client. */
  readonly given: number;
  readonly begin: number;
  readonly end: number;
  readonly seen: Seen;
}

/** While the content of these shards was unknown; of any, where none are named. */
export interface Blindness {
  readonly from: number;
  readonly to: number;
  readonly shards?: ReadonlySet<string>;
}

/** Something that was done to Redis or to a replica. */
export interface Fault {
  readonly name: string;
  readonly from: number;
  /** When there was a server again that could answer: from then on requests have a moment left to fail in. */
  readonly mended: number;
  /** When everything was as before. */
  readonly over: number;
  /** When the last try to sign in, redeem and refresh was begun after that, at any replica, that came to nothing. */
  readonly lastFailure: number | undefined;
  /** When every replica had answered again. */
  readonly to: number;
  /** What was answered from then on may be lost; minus infinity when everything is, undefined when nothing. */
  readonly lostSince: number | undefined;
  /** However lost it seemed: what was answered until the one is there again from the other on. */
  readonly back: { readonly until: number; readonly from: number } | undefined;
  /** Codes issued before or meanwhile may be gone: another history has begun. */
  readonly breaksLogins: boolean;
  readonly blind: Blindness | undefined;
  /** Only the memory of Redis was full: what revokes and what reads is answered all the while. */
  readonly isOnlyFull: boolean;
  /** A replica was killed: what it had just reported may be reported again by another one. */
  readonly killsReplica: boolean;
}

/** One alert in the audit stream of a replica. */
export interface AlertSeen {
  readonly type: string;
  readonly grantId: string;
  /** When its line was made. */
  readonly reported: number;
}

export interface History {
  readonly operations: readonly Operation[];
  readonly faults: readonly Fault[];
  /** All there are at the end; undefined while more may come. */
  readonly alerts: readonly AlertSeen[] | undefined;
}
