// Audit events and alerts: the types that the protocol core hands to the audit stream, the metrics and the alert sinks.
// The core only records them; `processes/log` and `processes/alerts` hold the sinks.

/** An alert written in the same action as the change it reports; one per grant for each type. Holds no token. */
export interface Alert {
  readonly id: string;
  readonly type:
    | 'refresh_token.reuse_detected'
    | 'refresh_token.retried_elsewhere'
    | 'authorization_code.replayed'
    | 'state_lost';
  readonly time: number;
  readonly clientUid: string;
  readonly clientId: string;
  readonly subject: string;
  readonly grantId: string;
  readonly presentedGeneration: number | undefined;
  readonly currentGeneration: number | undefined;
  /** Addresses of this and of the last good use. */
  readonly address: string;
  readonly lastAddress: string | undefined;
  readonly action: 'grant_revoked' | 'healed_forward' | 'answered_again';
}

/** One audit event. Only these fields leave the process; none of them is a credential. */
export interface AuditEvent {
  readonly type:
    | 'token.issued'
    | 'token.refreshed'
    | 'token.refused'
    | 'token.revoked'
    | 'refresh_token.retried'
    | 'refresh_token.retried_elsewhere'
    | 'refresh_token.reuse_detected'
    | 'authorization_code.issued'
    | 'authorization_code.replayed'
    | 'grant.evicted'
    | 'state_lost'
    | 'state_forged'
    | 'code_challenge.repeated'
    | 'client_assertion.replayed'
    | 'client_assertion.legacy_audience'
    | 'dpop_proof.replayed'
    | 'login.succeeded'
    | 'login.failed'
    | 'person.refused'
    | 'session.ended'
    | 'sessions.ended_all'
    | 'logout.delivered'
    | 'logout.given_up'
    | 'consent.given'
    | 'consent.denied'
    | 'consent.withdrawn'
    | 'key.activated'
    | 'client.accepted'
    | 'client.refused'
    | 'client.removed';
  readonly clientId?: string | undefined;
  readonly subject?: string | undefined;
  readonly grantId?: string | undefined;
  readonly grantType?: string | undefined;
  readonly tokenFormat?: string | undefined;
  readonly scope?: string | undefined;
  readonly audience?: string | undefined;
  readonly reason?: string | undefined;
  /** The name of an identity provider. */
  readonly provider?: string | undefined;
  readonly address?: string | undefined;
  /** The address of the use before, where it matters beside `address`. */
  readonly lastAddress?: string | undefined;
  readonly keyId?: string | undefined;
  readonly alert?: Alert | undefined;
}

/** The port for audit events. `record` never throws and never waits. */
export interface Audit {
  record(event: AuditEvent): void;
}
