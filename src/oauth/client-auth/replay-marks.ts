// The marks of credentials that count once: client assertions (RFC 7523 §3) and DPoP proofs (RFC 9449 §11.1). A replay is
// an audit event, never an alert of the outbox.

import type { StateLimits } from '../limits/state-limits.ts';
import type { Audit } from '../ports/audit.ts';
import { OAuthError, StoreUnavailableError } from '../ports/error.ts';
import type { ReplayStore } from '../ports/ports.ts';
import type { Client } from '../registry/client.ts';
import { isPublic } from './index.ts';
import type { ReplayMark } from './method.ts';

export interface ReplayMarksOptions {
  readonly replays: ReplayStore;
  /** Memory of this replica: for the marks of proofs while the store is unavailable, and of proofs of a public client. */
  readonly fallback: ReplayStore;
  readonly limits: Pick<StateLimits, 'namespaces'>;
  readonly audit: Audit;
}

type ClaimAnswer = Awaited<ReturnType<ReplayStore['claim']>>;

/** Of one mark in Redis, measured. */
const MARK_BYTES = 172;

/** Claims marks. */
export class ReplayMarks {
  readonly #options: ReplayMarksOptions;

  constructor(options: ReplayMarksOptions) {
    this.#options = options;
  }

  /**
   * Claims all marks of a request at once. Each is counted for the namespace of the client, those of a public client for none.
   * @throws OAuthError invalid_client for an assertion that was used before, invalid_dpop_proof for a proof;
   *   rate_limited when the namespace stores too much
   * @throws StoreUnavailableError when an assertion cannot be marked, or the store may have lost its mark
   */
  async claim(client: Client, marks: readonly ReplayMark[], address: string): Promise<void> {
    const answers = await Promise.all(marks.map((mark) => this.#claim(client, mark)));
    for (const [index, answer] of answers.entries()) {
      const { kind } = marks[index] as ReplayMark;
      if (answer === 'lost') throw new StoreUnavailableError(`replays.claim ${kind}`);
      if (answer === 'fresh') continue;
      this.#options.audit.record({ type: `${kind}.replayed`, clientId: client.clientId, address });
      throw replayed(kind);
    }
  }

  async #claim(client: Client, { kind, value, issuedAt, expiresAt }: ReplayMark): Promise<ClaimAnswer> {
    const { replays, fallback, limits } = this.#options;
    // Any of its people makes proofs of a public client, and could fill the store under its id.
    if (isPublic(client)) return fallback.claim(kind, value, expiresAt, issuedAt);
    const expiresAtSeconds = Math.ceil(expiresAt / 1000);
    // A replay leaves no mark: a party with one assertion of a client must not use up what its namespace may store.
    const record = { bytes: MARK_BYTES, expiresAtSeconds, isKept: (answer: ClaimAnswer) => answer === 'fresh' };
    try {
      return await limits.namespaces.hold(client, record, () => replays.claim(kind, value, expiresAt, issuedAt));
    } catch (error) {
      // A replayed proof yields a token for a key that the thief lacks, so the memory of one replica is enough.
      if (!(error instanceof StoreUnavailableError) || kind !== 'dpop_proof') throw error;
      return fallback.claim(kind, value, expiresAt, issuedAt);
    }
  }
}

function replayed(kind: ReplayMark['kind']): OAuthError {
  if (kind === 'client_assertion') {
    return new OAuthError('invalid_client', 'Client authentication failed.', { reason: 'client_assertion_replayed' });
  }
  return new OAuthError('invalid_dpop_proof', 'The DPoP proof is not valid.', { reason: 'dpop_proof_replayed' });
}
