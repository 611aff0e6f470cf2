// The store of what identity providers have said of the people who signed in by them. A local user is in no such record.

/** The assertion of a provider about a person. */
export interface AssertedRecord {
  readonly subject: string;
  /** The name, the issuer and the type of the provider. The record is invalid for a provider that differs in one. */
  readonly provider: string;
  readonly issuer: string;
  readonly type: string;
  readonly username: string;
  readonly displayName: string | undefined;
  /** A verified address. */
  readonly email: string | undefined;
  /** One that is not verified, by which a person can be blocked. */
  readonly unverifiedEmail?: string | undefined;
  readonly groups: readonly string[];
  /** When the provider said it: the time of the store, epoch milliseconds. */
  readonly verifiedAt: number;
  /** The MAC of the record; a store keeps it as it is. */
  readonly mac?: string | undefined;
}

/** A record that the store is to stamp. */
export type NewAssertedRecord = Omit<AssertedRecord, 'verifiedAt' | 'mac'>;

export interface PersonStore {
  /**
   * Stamps what a provider says now. Until it is sealed, the former record of the subject stands: a sign-in that a fault interrupts
   * takes nothing from the person.
   * @param lifetime milliseconds
   * @returns the record, with the time of the store
   */
  remember(record: NewAssertedRecord, lifetime: number): Promise<AssertedRecord>;
  /** Puts the record that was stamped last in place of the one before, with its MAC. An earlier one changes nothing. */
  seal(record: AssertedRecord, mac: string): Promise<void>;
  /** The sealed record; undefined where there is none, or its lifetime is over. */
  read(subject: string): Promise<AssertedRecord | undefined>;
}
