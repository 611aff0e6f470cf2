// The interaction store over a Map of sessions. An interaction is a person's pending decision about one request; only
// the session that opened it can read it.

import {
  type Interaction,
  type InteractionStore,
  OPEN_INTERACTIONS_PER_SESSION,
  type TakeAttempt,
} from '../oauth/ports/login-stores.ts';
import type { Clock } from '../oauth/ports/ports.ts';
import type { ExpiringMap } from './expiring-map.ts';

/** An interaction as stored, with the time at which it ends: a decision does not extend it. */
interface InteractionRecord {
  readonly interaction: Interaction;
  readonly endsAt: number;
  /** The id of the attempt that has taken the interaction. */
  readonly takenBy?: string;
}

/** {@link InteractionStore} in this process. */
export class MemoryInteractions implements InteractionStore {
  readonly #clock: Clock;
  readonly #bySession: ExpiringMap<readonly InteractionRecord[]>;

  constructor({ clock, bySession }: { clock: Clock; bySession: ExpiringMap<readonly InteractionRecord[]> }) {
    this.#clock = clock;
    this.#bySession = bySession;
  }

  async create(interaction: Omit<Interaction, 'decision' | 'decisionMac'>, lifetime: number): Promise<void> {
    const { sessionId } = interaction;
    const opened = { interaction: { ...interaction, decision: undefined }, endsAt: this.#clock.now() + lifetime };
    const open = this.#unexpired(sessionId).filter(({ takenBy }) => takenBy === undefined);
    this.#keep(sessionId, [...open, opened].slice(-OPEN_INTERACTIONS_PER_SESSION));
  }

  async read(interactionId: string, sessionId: string): Promise<Interaction | undefined> {
    return this.#find(interactionId, sessionId)?.interaction;
  }

  async decide(
    interactionId: string,
    sessionId: string,
    decision: 'allow' | 'deny',
    decisionMac?: string,
  ): Promise<'decided' | 'conflict' | 'gone'> {
    const record = this.#find(interactionId, sessionId);
    if (record === undefined) return 'gone';
    const { interaction, endsAt } = record;
    if (interaction.decision !== undefined) return interaction.decision === decision ? 'decided' : 'conflict';
    this.#replace(sessionId, record, { interaction: { ...interaction, decision, decisionMac }, endsAt });
    return 'decided';
  }

  async take(
    interactionId: string,
    sessionId: string,
    { attemptId, after }: TakeAttempt,
  ): Promise<Interaction | undefined> {
    const record = this.#unexpired(sessionId).find(({ interaction }) => interaction.interactionId === interactionId);
    if (record?.interaction.decision === undefined) return undefined;
    const { takenBy = attemptId } = record;
    if (takenBy !== attemptId && !after.includes(takenBy)) return undefined;
    this.#replace(sessionId, record, { ...record, takenBy: attemptId });
    return record.interaction;
  }

  #find(interactionId: string, sessionId: string): InteractionRecord | undefined {
    return this.#unexpired(sessionId).find(
      ({ interaction, takenBy }) => interaction.interactionId === interactionId && takenBy === undefined,
    );
  }

  #replace(sessionId: string, former: InteractionRecord, next: InteractionRecord): void {
    this.#keep(
      sessionId,
      this.#unexpired(sessionId).map((record) => (record === former ? next : record)),
    );
  }

  #unexpired(sessionId: string): readonly InteractionRecord[] {
    const now = this.#clock.now();
    return (this.#bySession.get(sessionId) ?? []).filter(({ endsAt }) => endsAt > now);
  }

  #keep(sessionId: string, records: readonly InteractionRecord[]): void {
    this.#bySession.set(sessionId, records, Math.max(...records.map(({ endsAt }) => endsAt)));
  }
}
