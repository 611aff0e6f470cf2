// The load of the soak: one journey is a token of a client by its rotating secret, and of one sign-in the redemption of its
// code, userinfo, a refresh and an introspection. Each answer has to be the expected one.

import {
  CLIENT_CREDENTIALS,
  FORM_HEADERS,
  HEADERS,
  type Headers,
  PERSON,
  redemption,
  refresh,
  type Tokens,
} from '../load/load-client.ts';
import { ROTATING_ID } from './changes.ts';

const TIMEOUT_MILLISECONDS = 10_000;

interface JourneysOptions {
  readonly origin: string;
  /** The secret of the client whose secret rotates, as it is in its file. */
  readonly readSecret: () => Promise<string>;
}

/** Journeys that run beside each other, and what came of them. */
export class Journeys {
  /** Of the keys that signed a token. */
  readonly keyIds = new Set<string>();
  readonly #options: JourneysOptions;
  readonly #running = new Set<Promise<void>>();
  readonly #failures = new Map<string, number>();
  #requests = 0;

  constructor(options: JourneysOptions) {
    this.#options = options;
  }

  /** @param code of a grant of the client of the load, with `openid` */
  begin(code: string): void {
    const running: Promise<void> = this.#run(code)
      .catch((error: unknown) => {
        const text = error instanceof Error ? `${error.message} ${error.cause ?? ''}`.trim() : String(error);
        this.#failures.set(text, (this.#failures.get(text) ?? 0) + 1);
      })
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  async settled(): Promise<void> {
    await Promise.all(this.#running);
  }

  summary(): string {
    const failed = [...this.#failures.values()].reduce((total, count) => total + count, 0);
    return `${this.#requests} requests, ${failed} failed, ${this.#running.size} journeys in flight`;
  }

  /** Each failure once, with its count and the body of the answer. */
  faults(): readonly string[] {
    return [...this.#failures].map(([text, count]) => `${count} × ${text}`);
  }

  async #run(code: string): Promise<void> {
    await this.#machine();
    const { access_token: token, refresh_token: refreshToken = '' } = await this.#token(redemption(code));
    const { email } = await this.#ask('userinfo', { headers: { authorization: `Bearer ${token}` } });
    if (email !== PERSON.email) throw new Error('userinfo: the address is missing');
    const { access_token: renewed } = await this.#token(refresh(refreshToken));
    const body = new URLSearchParams({ token: renewed }).toString();
    const { active } = await this.#ask('introspect', { headers: HEADERS, body });
    if (active !== true) throw new Error('introspect: the token is not active');
  }

  /** A token of the client whose secret rotates. */
  async #machine(): Promise<void> {
    const secret = await this.#options.readSecret();
    const basic = Buffer.from(`${ROTATING_ID}:${encodeURIComponent(secret)}`).toString('base64');
    await this.#token(CLIENT_CREDENTIALS, { ...FORM_HEADERS, authorization: `Basic ${basic}` });
  }

  async #token(body: string, headers: Headers = HEADERS): Promise<Tokens> {
    const tokens = (await this.#ask('token', { headers, body })) as unknown as Tokens;
    const header = Buffer.from(tokens.access_token.split('.')[0] ?? '', 'base64url').toString();
    this.keyIds.add((JSON.parse(header) as { readonly kid: string }).kid);
    return tokens;
  }

  async #ask(path: string, request: { readonly headers: Headers; readonly body?: string }) {
    this.#requests += 1;
    const response = await fetch(`${this.#options.origin}/${path}`, {
      ...request,
      method: request.body === undefined ? 'GET' : 'POST',
      signal: AbortSignal.timeout(TIMEOUT_MILLISECONDS),
    }).catch((error: unknown) => {
      throw new Error(`${path}: no answer`, { cause: error });
    });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${path} answered ${response.status}: ${text}`);
    return JSON.parse(text) as Record<string, unknown>;
  }
}
