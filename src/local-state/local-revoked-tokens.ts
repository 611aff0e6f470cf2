// The revoked JWT access tokens that `grantry dev` keeps in `.grantry/`: the signing key outlives a restart, so
// revocations must too. One line for each token; lines of expired tokens are removed.

import { StoreUnavailableError } from '../oauth/ports/error.ts';
import type { Clock } from '../oauth/ports/ports.ts';
import type { RevokedTokenStore } from '../oauth/ports/token-stores.ts';
import type { StateFiles } from './state-files.ts';

const NAME = 'revoked-tokens';
/** Far more than the tokens revoked on one machine in the lifetime of a token. */
const MAX_MARKS = 100_000;
/** The file is rewritten after this many appended lines. */
const LINES_BETWEEN_REWRITES = 10_000;

export interface LocalRevokedTokensOptions {
  /** Holds the marks in memory while the process runs. */
  readonly store: RevokedTokenStore;
  readonly state: StateFiles;
  readonly clock: Clock;
}

/** A {@link RevokedTokenStore} whose marks outlive a restart if the folder can be written. */
export class LocalRevokedTokens implements RevokedTokenStore {
  readonly #store: RevokedTokenStore;
  readonly #state: StateFiles;
  readonly #clock: Clock;
  /** The expiry of each token in epoch seconds, by jti; the oldest mark first. */
  readonly #marks = new Map<string, number>();
  #newLines = 0;
  #written: Promise<void> = Promise.resolve();

  private constructor({ store, state, clock }: LocalRevokedTokensOptions) {
    this.#store = store;
    this.#state = state;
    this.#clock = clock;
  }

  /** Loads the marks of earlier processes. @throws StateError when their file cannot be read */
  static async open(options: LocalRevokedTokensOptions): Promise<LocalRevokedTokens> {
    const tokens = new LocalRevokedTokens(options);
    for (const line of (await options.state.read(NAME))?.split('\n') ?? []) {
      // A process that was killed may have left a partial line.
      const [, expiry = '', jti = ''] = /^(\d{1,12}) (\S+)$/.exec(line) ?? [];
      if (jti !== '') tokens.#remember(jti, Number(expiry));
    }
    await tokens.#rewrite();
    for (const [jti, expiry] of tokens.#marks) await options.store.mark(jti, expiry);
    return tokens;
  }

  /** @throws StoreUnavailableError when the mark applies in this process but could not be written */
  async mark(jti: string, expiresAtSeconds: number): Promise<void> {
    await this.#store.mark(jti, expiresAtSeconds);
    if (this.#state.memoryReason !== undefined) return;
    this.#remember(jti, expiresAtSeconds);
    const written = this.#written.then(() => this.#write(`${expiresAtSeconds} ${jti}`));
    this.#written = written.catch(() => undefined);
    await written.catch((cause: unknown) => {
      throw new StoreUnavailableError('revokedTokens.mark', cause);
    });
  }

  has(jti: string): Promise<boolean> {
    return this.#store.has(jti);
  }

  #remember(jti: string, expiresAtSeconds: number): void {
    const expiry = Math.max(expiresAtSeconds, this.#marks.get(jti) ?? 0);
    this.#marks.delete(jti);
    this.#marks.set(jti, expiry);
  }

  async #write(line: string): Promise<void> {
    this.#newLines++;
    if (this.#newLines < LINES_BETWEEN_REWRITES) await this.#state.append(NAME, line);
    else await this.#rewrite();
  }

  async #rewrite(): Promise<void> {
    let excess = this.#marks.size - MAX_MARKS;
    for (const [jti, expiry] of this.#marks) {
      if (expiry * 1000 <= this.#clock.now() || excess > 0) this.#marks.delete(jti);
      excess--;
    }
    const lines = [...this.#marks].map(([jti, expiry]) => `${expiry} ${jti}`);
    await this.#state.replace(NAME, lines.join('\n'));
    this.#newLines = 0;
  }
}
