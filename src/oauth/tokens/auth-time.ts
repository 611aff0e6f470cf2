// The time of a sign-in as clients and APIs get it (`auth_time`, OpenID Connect Core §2, RFC 9068 §2.2.1).

/** A sign-in here that may stand on an earlier one at an identity provider; both in epoch milliseconds. */
export interface TimedSignIn {
  /** Watermarks and kill switches go by it. */
  readonly authTime: number;
  readonly upstreamAuthTime?: number | undefined;
}

/** The earlier of both times: here a person has proved nothing later than there. */
export function reportedAuthTime({ authTime, upstreamAuthTime = authTime }: TimedSignIn): number {
  return Math.min(authTime, upstreamAuthTime);
}
