// A deployment with two replicas over the same stores, two people and a few clients, for the tests of the account page. The clock
// stands still unless it is moved.

import { randomBytes } from 'node:crypto';
import { expect, onTestFinished } from 'vitest';
import { LocalUsers } from '../../../src/login/local/local-users.ts';
import { memoryStores } from '../../../src/memory/stores.ts';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import type { NewSession } from '../../../src/oauth/ports/login-stores.ts';
import type { Stores } from '../../../src/oauth/ports/ports.ts';
import type { Resource } from '../../../src/oauth/registry/resource.ts';
import { sealedStores } from '../../../src/oauth/sealed-stores/sealed-stores.ts';
import { RecordMacs } from '../../../src/oauth/tokens/record-macs.ts';
import { answerIn } from '../../clients/person.ts';
import { sampleSession } from '../../contracts/sample-grants.ts';
import { type Grantry, type LogLine, PKCE, startGrantry, type TestClient, TestClock } from '../../grantry.ts';
import { API, TokenCalls, WEB } from '../protocol/token-calls.ts';
import { hidden, type Page, TestBrowser } from '../sign-in/sign-in-browser.ts';
import { PASSWORD, people } from '../sign-in/sign-in-world.ts';

const AUDIENCE = 'https://api.shop.example/';

/** A web application that signs people in and gets tokens for an API. */
export const SHOP: TestClient = {
  ...WEB,
  displayName: 'Shop & Sons',
  scopes: ['openid', 'profile', 'read', 'write'],
  audiences: [AUDIENCE],
  idTokens: { signingAlgorithm: 'ES256', lifetimeSeconds: 60 },
};
/** One whose tokens are opaque. */
export const MAIL: TestClient = {
  clientId: 'shop.mail',
  secret: 'the-secret-of-the-mail-application',
  displayName: 'Mail',
  audiences: [AUDIENCE],
  tokens: {
    accessTokenFormat: 'opaque',
    accessTokenLifetimeSeconds: 600,
    refreshTokenIdleLifetimeSeconds: 86_400,
    refreshTokenLifetimeSeconds: 86_400,
    refreshTokenRotation: 'Always',
    refreshTokenReuseGraceSeconds: 10,
  },
};
const API_CLIENT: TestClient = { ...API, resourceServerAudiences: [AUDIENCE] };

export interface AccountWorld {
  readonly stores: Stores;
  readonly clock: TestClock;
  readonly one: Grantry;
  /** Another replica. */
  readonly other: Grantry;
  /** A browser that has never been here, at the first replica. */
  browser(userAgent?: string): AccountBrowser;
  /** Begins so many sessions of alice, one after the other, without a browser. */
  beginSessions(count: number): Promise<void>;
  /** Each call of this store, or of this method of it, fails from now on at both replicas. */
  breakStore(name: keyof Stores, method?: string): void;
  mendStores(): void;
  /** The audit lines of both replicas about people, without times. */
  audits(): readonly LogLine[];
  /** The reason in the last request's log line of the first replica. */
  lastReason(): unknown;
}

/** What a client holds for a person. */
export interface Held {
  readonly access_token: string;
  readonly refresh_token: string;
}

export interface AccountWorldOptions {
  readonly clients?: readonly TestClient[];
  readonly resources?: readonly Resource[];
  readonly issuer?: string;
  /** Default: in memory. */
  readonly storesFor?: (clock: TestClock) => Stores;
  /** The sessions are as versions made them that recorded neither address nor browser. */
  readonly withoutPlaces?: boolean;
}

/** It ends with the test. */
export async function anAccountWorld(options: AccountWorldOptions = {}): Promise<AccountWorld> {
  const { clients = [SHOP, MAIL, API_CLIENT], resources = [], issuer = 'http://127.0.0.1:9400' } = options;
  const clock = new TestClock();
  const whole = options.storesFor?.(clock) ?? memoryStores({ clock });
  const stores = options.withoutPlaces ? storesWithoutPlaces(whole) : whole;
  const broken = new Set<string>();
  const pepper = randomBytes(32);
  const replica = async () => {
    const grantry = await startGrantry({
      clients,
      resources,
      issuer,
      clock,
      pepper,
      owners: new LocalUsers({ clock, users: people([]) }),
      auditSubjects: 'plain',
      wrapStores: () => breakable(stores, broken),
    });
    onTestFinished(() => grantry.stop());
    return grantry;
  };
  const [one, other] = [await replica(), await replica()];
  return {
    stores,
    clock,
    one,
    other,
    browser: (userAgent) => new AccountBrowser(one, userAgent),
    async beginSessions(count) {
      const macs = new RecordMacs({ issuer, peppers: [pepper] });
      const { sessions } = sealedStores(stores, { macs, onForged: () => {} });
      for (let begun = 0; begun < count; begun++) {
        clock.advance(1);
        const subject = 'usr__opn0Ky1LrfMdvbK8-HI2s';
        await sessions.create(sampleSession({ subject, address: '192.0.2.1', browser: 'Firefox' }), undefined);
      }
    },
    breakStore: (name, method = '*') => void broken.add(`${name}.${method}`),
    mendStores: () => broken.clear(),
    audits: () =>
      [one, other]
        .flatMap((grantry) => grantry.audits())
        .map(({ level: _level, time: _time, stream: _stream, ...fields }) => fields)
        .filter(({ event }) => /^(login|sessions?|consent)\./.test(String(event))),
    lastReason: () => one.logs().findLast(({ route }) => route !== undefined)?.reason,
  };
}

function storesWithoutPlaces(stores: Stores): Stores {
  const { sessions } = stores;
  const withoutPlace = new Proxy(sessions, {
    get: (target, method) =>
      method === 'create'
        ? ({ address: _address, browser: _browser, ...session }: NewSession, ...more: [string | undefined]) =>
            target.create(session, ...more)
        : Reflect.get(target, method).bind(target),
  });
  return { ...stores, sessions: withoutPlace };
}

function breakable(stores: Stores, broken: ReadonlySet<string>): Stores {
  const wrapped = Object.entries(stores).map(([name, store]) => [
    name,
    new Proxy(store as object, {
      get(target, method) {
        if ([`${name}.*`, `${name}.${String(method)}`].some((each) => broken.has(each))) {
          return async () => {
            throw new StoreUnavailableError(`${name}.${String(method)}`);
          };
        }
        const value: unknown = Reflect.get(target, method);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    }),
  ]);
  return Object.fromEntries(wrapped) as Stores;
}

/** A browser, with what a person does in it. */
export class AccountBrowser extends TestBrowser {
  readonly #grantry: Grantry;
  readonly #userAgent: string | undefined;

  constructor(grantry: Grantry, userAgent?: string) {
    super(`http://127.0.0.1:${grantry.port}`, grantry.issuer);
    this.#grantry = grantry;
    this.#userAgent = userAgent;
  }

  override send(method: string, path: string, headers: Readonly<Record<string, string>>, body?: string): Promise<Page> {
    const agent = this.#userAgent === undefined ? {} : { 'user-agent': this.#userAgent };
    return super.send(method, path, { ...agent, ...headers }, body);
  }

  /** The same browser, whose next request another replica gets. */
  at(grantry: Grantry): AccountBrowser {
    const there = new AccountBrowser(grantry, this.#userAgent);
    for (const [name, value] of this.cookies) there.cookies.set(name, value);
    return there;
  }

  /** Opens a page of the account as a person who is not signed in, and signs in there. */
  async signIn(username = 'alice', path = '/account'): Promise<this> {
    const page = await this.get(path);
    const fields = { username, password: PASSWORD, csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
    const answer = await this.post(`${path.replace(/\/account.*$/, '')}/login`, fields);
    expect([answer.status, answer.location]).toEqual([303, path]);
    return this;
  }

  /** Lets the client in and comes back with what it gets for that. */
  async letIn(client: TestClient, { username = 'alice', scope = 'read' } = {}): Promise<Held> {
    const code = (await this.authorize(client, { username, scope })).searchParams.get('code') ?? '';
    const { clientId, secret } = client;
    const redeemed = await new TokenCalls(this.#grantry, { clientId, ...(secret !== undefined && { secret }) }).redeem(
      code,
    );
    expect(redeemed.status).toBe(200);
    return redeemed.body as unknown as Held;
  }

  /** Goes through the request of a client with every page that it shows. */
  authorize({ clientId }: TestClient, { username = 'alice', scope = 'read' } = {}): Promise<URL> {
    const answers = { username, password: PASSWORD, decision: 'allow' } as const;
    return answerIn(this, this.authorizeUrl(clientId, scope), answers);
  }

  authorizeUrl(clientId: string, scope = 'read'): URL {
    const url = new URL(`${this.#grantry.issuer}/authorize`);
    url.search = new URLSearchParams({
      response_type: 'code',
      client_id: clientId,
      redirect_uri: 'https://app.example/cb',
      scope,
      code_challenge: PKCE.challenge,
      code_challenge_method: 'S256',
    }).toString();
    return url;
  }

  /** Presses a button of a page. */
  press(form: AccountForm, headers: Readonly<Record<string, string>> = {}): Promise<Page> {
    const { target, asks, ...fields } = form;
    return asks ? this.get(questionPath(form), headers) : this.post(target, fields, headers);
  }

  /** Presses a button that asks, and answers the form of the question. */
  async formAfter(path: string, action: string, index = 0): Promise<AccountForm> {
    return formOf(await this.press(formOf(await this.get(path), action, index)), action);
  }
}

/** Where a button leads that asks. */
export function questionPath({ target, action, subject }: AccountForm): string {
  return `${target}?${new URLSearchParams({ confirm: action, ...(subject !== '' && { subject }) })}`;
}

/** A form of an account page. */
export interface AccountForm {
  readonly target: string;
  /** Whether it leads to a question, and posts nothing. */
  readonly asks: boolean;
  readonly action: string;
  readonly csrf: string;
  readonly subject: string;
}

/** The forms of a page in their order. */
export function formsOf({ body }: Page): readonly AccountForm[] {
  const forms = body.match(/<form\b[\s\S]*?<\/form>/g) ?? [];
  return forms.map((form) => ({
    target: /action="([^"]*)"/.exec(form)?.[1] ?? '',
    asks: !form.includes('method="post"'),
    action: /name="(?:action|confirm)" value="([^"]*)"/.exec(form)?.[1] ?? '',
    csrf: /name="csrf" value="([^"]*)"/.exec(form)?.[1] ?? '',
    subject: /name="subject" value="([^"]*)"/.exec(form)?.[1] ?? '',
  }));
}

/** The form of this action; fails the test where there is none. */
export function formOf(page: Page, action: string, index = 0): AccountForm {
  const form = formsOf(page).filter((each) => each.action === action)[index];
  if (form === undefined) throw new Error(`no form ${action} on a page with status ${page.status}`);
  return form;
}

/** The visible texts of the entries of a list. */
export function entriesOf({ body }: Page): readonly string[] {
  return body
    .split('<li class="entry">')
    .slice(1)
    .map((entry) =>
      entry
        .replace(/<form\b[\s\S]*/, '')
        .replace(/<[^>]+>/g, ' ')
        .replace(/&#38;/g, '&')
        .replace(/\s+/g, ' ')
        .trim(),
    );
}
