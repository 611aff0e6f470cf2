// Whose the grants are that this process had to do with lately. It never changes, so knowing it from before saves the refresh
// of an active session one of its two round trips.

/** Some 3 MB; what has not been asked for the longest goes first. */
const MOST = 10_000;

export class KnownSubjects {
  readonly #byGrant = new Map<string, string>();

  of(grantId: string): string | undefined {
    const subject = this.#byGrant.get(grantId);
    if (subject !== undefined) this.#renew(grantId, subject);
    return subject;
  }

  learn(grantId: string, subject: string): void {
    this.#renew(grantId, subject);
    if (this.#byGrant.size <= MOST) return;
    const [oldest] = this.#byGrant.keys();
    if (oldest !== undefined) this.#byGrant.delete(oldest);
  }

  /** Puts it behind all others. */
  #renew(grantId: string, subject: string): void {
    this.#byGrant.delete(grantId);
    this.#byGrant.set(grantId, subject);
  }
}
