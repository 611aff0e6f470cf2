// What tests of grants ask of a running grantry: redeem, refresh, introspect, revoke, each as one call.

import { hashPassword, LocalUsers } from '../../../src/login/local/local-users.ts';
import { systemClock } from '../../../src/processes/lifecycle/machine.ts';
import { basic, type Grantry, PKCE } from '../../grantry.ts';

/** The confidential client of these tests, and its secret. */
export const WEB = { clientId: 'shop.web', secret: 'the-secret-of-the-web-application' } as const;
/** The API behind the tokens: it may introspect them. */
export const API = { clientId: 'shop.api', secret: 'the-secret-of-the-api-behind-it' } as const;

/** A directory with one person, who can be disabled. */
export async function aDirectory(): Promise<{ owners: LocalUsers; subject: string; setDisabled(to: boolean): void }> {
  const alice = { username: 'alice', passwordHash: await hashPassword('a password of alice'), disabled: false };
  const owners = new LocalUsers({ clock: systemClock, users: [alice] });
  const subject = (await owners.authenticate('alice', 'a password of alice'))?.subject ?? '';
  return { owners, subject, setDisabled: (disabled) => owners.replace([{ ...alice, disabled }]) };
}

/** One answer of a JSON endpoint, with the reason in its log line. */
export interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  readonly reason: unknown;
}

interface Caller {
  readonly clientId: string;
  /** Absent for a public client. */
  readonly secret?: string;
}

/** Calls of one client, by default {@link WEB}. */
export class TokenCalls {
  readonly #grantry: Grantry;
  readonly #caller: Caller;

  constructor(grantry: Grantry, caller: Caller = WEB) {
    this.#grantry = grantry;
    this.#caller = caller;
  }

  as(caller: Caller): TokenCalls {
    return new TokenCalls(this.#grantry, caller);
  }

  /** Redeems a code rightly, unless `changes` say otherwise; an undefined one leaves the parameter out. */
  redeem(code: string, changes: Readonly<Record<string, string | undefined>> = {}, proof?: string): Promise<Answer> {
    const form = { code, redirect_uri: 'https://app.example/cb', code_verifier: PKCE.verifier, ...changes };
    return this.post('/token', { grant_type: 'authorization_code', ...form }, proof);
  }

  refresh(refreshToken: unknown, changes: Readonly<Record<string, string | undefined>> = {}): Promise<Answer> {
    return this.post('/token', { grant_type: 'refresh_token', refresh_token: String(refreshToken), ...changes });
  }

  revoke(token: unknown): Promise<Answer> {
    return this.post('/revoke', { token: String(token) });
  }

  introspect(token: unknown): Promise<Answer> {
    return this.post('/introspect', { token: String(token) });
  }

  /** @throws Error for any other answer: what failed says nothing of the token */
  async isActive(token: unknown): Promise<boolean> {
    const { status, body } = await this.introspect(token);
    if (status !== 200) throw new Error(`the introspection endpoint answered ${status}`);
    return body.active === true;
  }

  /** @param proof of a DPoP key, sent with the request */
  async post(path: string, form: Readonly<Record<string, string | undefined>>, proof?: string): Promise<Answer> {
    const { clientId, secret } = this.#caller;
    const pairs = Object.entries(form).filter((pair): pair is [string, string] => pair[1] !== undefined);
    const headers: Record<string, string> = proof === undefined ? {} : { dpop: proof };
    if (secret === undefined) pairs.push(['client_id', clientId]);
    else headers.authorization = basic(clientId, secret);
    const response = await this.#grantry.post(path, pairs, { headers });
    const text = await response.text();
    const reason = this.#grantry.logs().findLast(({ route }) => route !== undefined)?.reason;
    return { status: response.status, body: text === '' ? {} : JSON.parse(text), reason };
  }
}
