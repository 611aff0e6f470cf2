// A running server with a few clients and people, for the tests of a sign-in. The clock stands still unless it is
// moved.

import { hash } from '@node-rs/argon2';
import { onTestFinished } from 'vitest';
import { type Block, Blocks } from '../../../src/login/blocks.ts';
import { LocalUsers, type LocalUsersOptions } from '../../../src/login/local/local-users.ts';
import type { AuditEvent } from '../../../src/oauth/ports/audit.ts';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import type { Stores } from '../../../src/oauth/ports/ports.ts';
import type { Client } from '../../../src/oauth/registry/client.ts';
import { secretVerifier } from '../../../src/oauth/registry/client-secret.ts';
import type { IdentityProvider } from '../../../src/oauth/registry/identity-provider.ts';
import type { SigningKey } from '../../../src/oauth/registry/keys.ts';
import type { Resource } from '../../../src/oauth/registry/resource.ts';
import type { AddressLookup } from '../../../src/outbound/name-lookup.ts';
import { systemClock } from '../../../src/processes/lifecycle/machine.ts';
import { type Grantry, type GrantryOptions, type LogLine, PKCE, startGrantry, type TestClock } from '../../grantry.ts';
import { aClient } from '../../oauth/a-client.ts';
import { TestBrowser } from './sign-in-browser.ts';

export const PASSWORD = 'correct horse battery';
export const SECRET = 'a-secret-of-the-shop-that-is-long-enough';
export const CALLBACK = 'https://shop.example/callback';
/** The content security policy of a page whose forms may end at a client or a provider. */
export const LEAVING_POLICY =
  "default-src 'none'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'";
/** That of a page whose forms end at ours. */
export const OWN_POLICY = `${LEAVING_POLICY}; form-action 'self'`;
const uid = '6a0c4d1e-3c5b-5f43-9d0a-0f6f1f6f0001';

/** A confidential web application. */
export const WEB: Client = aClient({ uid, secretVerifiers: [secretVerifier(uid, SECRET)] });

/** A public program on a person's computer. */
export const NATIVE: Client = aClient({
  uid: '6a0c4d1e-3c5b-5f43-9d0a-0f6f1f6f0002',
  clientId: 'shop.native',
  displayName: 'Shop for the desk',
  authMethod: 'none',
  redirectUris: ['http://127.0.0.1/callback', 'http://[::1]/callback', 'com.example.app:/callback'],
  grantTypes: ['authorization_code', 'refresh_token'],
});

// The cheapest hash that a users file may hold: a test may verify hundreds of guesses.
const COST = { memoryCost: 7168, timeCost: 1, parallelism: 1 };
const passwordHash = await hash(PASSWORD, COST);
const anotherHash = await hash(PASSWORD, COST);

export interface WorldOptions {
  readonly issuer?: string;
  /** Default: one of its own. */
  readonly keys?: readonly SigningKey[];
  /** Where hosts of clients may be called. */
  readonly fetch?: NonNullable<GrantryOptions['fetch']>;
  readonly lookup?: AddressLookup;
  readonly clients?: readonly Client[];
  readonly resources?: readonly Resource[];
  /** Of alice and bob. */
  readonly disabled?: readonly string[];
  readonly rateLimits?: boolean;
  readonly trustedProxies?: readonly string[];
  readonly hashing?: LocalUsersOptions['hashing'];
  /** Default: no upstream sign-in. */
  readonly providers?: readonly IdentityProvider[];
  /** Default: providers-first. */
  readonly signInOrder?: NonNullable<GrantryOptions['signInOrder']>;
  /** Whether there are no local users. */
  readonly hasNoUsers?: boolean;
  /** Default: those in memory. */
  readonly stores?: Stores;
  /** Default: one of its own. */
  readonly clock?: TestClock;
  /** Default: one of its own. */
  readonly pepper?: Uint8Array;
}

type Query = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface World {
  readonly issuer: string;
  readonly stores: Stores;
  /** POSTs a form without a browser. */
  readonly post: Grantry['post'];
  /** Audit events so far, without those of tokens and codes. */
  readonly events: readonly Partial<AuditEvent>[];
  now(): number;
  advance(milliseconds: number): void;
  /** A browser that has never been here. */
  browser(): TestBrowser;
  /** The path of a good request of {@link WEB} with these parameters replaced, doubled or left out. */
  authorizePath(changes?: Query): string;
  setClients(clients: readonly Client[]): void;
  setResources(resources: readonly Resource[]): void;
  setKeys(keys: readonly SigningKey[]): void;
  setDisabled(usernames: readonly string[]): void;
  /** Replaces what lists of users block among the people of providers. */
  setBlocks(list: readonly Block[]): void;
  /** Replaces the providers, once each of them is discovered. */
  setProviders(providers: readonly IdentityProvider[]): Promise<void>;
  /** Gives this person the hash of {@link PASSWORD} with another salt. */
  changePassword(username: string): void;
  /** Each call of this store fails from now on, by default as an absent server would make it fail. */
  breakStore(name: keyof Stores, error?: unknown): void;
  /** Each call of this store takes effect from now on, but its answer is lost. */
  loseAnswersOf(name: keyof Stores): void;
  mendStores(): void;
  /** The calls of stores so far, as `sessions.use`; without those about the list of users, which no request makes. */
  storeCalls(): readonly string[];
  /** Starts the pending logouts that no replica handles; resolves before clients are notified. */
  sweepLogouts(): Promise<void>;
  /** Resolves when the store knows the people of now. */
  usersRecorded(): Promise<void>;
  subject(username: string): string;
  /** The reason in the last request's log line. */
  lastReason(): string | undefined;
  /** What the admin port says about itself. */
  metrics(): Promise<string>;
  /** All log lines so far. */
  logs(): readonly LogLine[];
}

/** A world of its own; it ends with the test. */
export async function aWorld(options: WorldOptions = {}): Promise<World> {
  const { clients = [WEB, NATIVE], disabled = [], hashing } = options;
  const users = new LocalUsers({
    clock: systemClock,
    users: options.hasNoUsers ? [] : people(disabled),
    ...(hashing && { hashing }),
  });
  const blocks = new Blocks();
  const broken = new Map<keyof Stores, unknown>();
  const silent = new Set<keyof Stores>();
  const calls: string[] = [];
  let stores: Stores | undefined;
  const grantry = await startGrantry({
    clients,
    resources: options.resources ?? [],
    owners: users,
    rateLimits: options.rateLimits ?? true,
    auditSubjects: 'plain',
    ...(options.issuer !== undefined && { issuer: options.issuer }),
    ...(options.keys && { keys: options.keys }),
    ...(options.fetch && { fetch: options.fetch }),
    ...(options.lookup && { lookup: options.lookup }),
    ...(options.trustedProxies && { trustedProxies: options.trustedProxies }),
    ...(options.clock && { clock: options.clock }),
    ...(options.signInOrder && { signInOrder: options.signInOrder }),
    ...(options.pepper && { pepper: options.pepper }),
    blocks,
    wrapStores: (inMemory) => {
      stores = options.stores ?? inMemory;
      return breakable(stores, { broken, silent, calls });
    },
  });
  onTestFinished(() => grantry.stop());
  if (options.providers) await grantry.setProviders(options.providers);
  const { issuer, clock, post } = grantry;
  return {
    issuer,
    post,
    stores: stores ?? grantry.stores,
    get events() {
      return eventsOf(grantry.audits());
    },
    now: () => clock.now(),
    advance: (milliseconds) => clock.advance(milliseconds),
    browser: () => new TestBrowser(`http://127.0.0.1:${grantry.port}`, issuer),
    authorizePath: (changes = {}) => `${new URL(grantry.url('/authorize')).pathname}?${query(changes)}`,
    setClients: (next) => grantry.setClients(next),
    setResources: (next) => grantry.setResources(next),
    setKeys: (keys) => grantry.setKeys(keys),
    setBlocks: (list) => blocks.replace(list),
    setDisabled: (usernames) => users.replace(people(usernames)),
    setProviders: (providers) => grantry.setProviders(providers),
    changePassword: (username) => users.replace(people(disabled, username)),
    breakStore: (name, error) => void broken.set(name, error),
    loseAnswersOf: (name) => void silent.add(name),
    mendStores() {
      broken.clear();
      silent.clear();
    },
    storeCalls: () => calls.filter((call) => !call.startsWith('users.')),
    sweepLogouts: () => grantry.server.logouts.sweep(),
    usersRecorded: () => grantry.usersRecorded(),
    subject: (username) => SUBJECTS[username] ?? 'nobody',
    lastReason: () => grantry.logs().findLast(({ route }) => route !== undefined)?.reason as string | undefined,
    metrics: async () => (await fetch(grantry.adminUrl('/metrics'))).text(),
    logs: () => grantry.logs(),
  };
}

const SUBJECTS: Readonly<Record<string, string>> = {
  alice: 'usr__opn0Ky1LrfMdvbK8-HI2s',
  bob: 'usr_CT-JdrScZvoW3W4zUXrxaQ',
};

/** `team-1` to `team-25`, and one that is no team. */
const GROUPS_OF_ALICE = ['<b>admins', ...Array.from({ length: 25 }, (_, index) => `team-${index + 1}`)];

/** The people of the tests. */
export function people(disabled: readonly string[], changed?: string) {
  const entry = (username: string) => ({
    username,
    passwordHash: username === changed ? anotherHash : passwordHash,
    disabled: disabled.includes(username),
  });
  const alice = { ...entry('alice'), displayName: 'Alice Ang', email: 'alice@shop.example', groups: GROUPS_OF_ALICE };
  return [alice, entry('bob')];
}

function eventsOf(lines: readonly LogLine[]): readonly Partial<AuditEvent>[] {
  return lines
    .map(({ level: _level, time: _time, stream: _stream, event, ...fields }) => ({ type: event, ...fields }))
    .filter(({ type }) => /^(login|sessions?|consent|person)\./.test(String(type))) as Partial<AuditEvent>[];
}

function query(changes: Query): URLSearchParams {
  const good: Query = {
    response_type: 'code',
    client_id: WEB.clientId,
    redirect_uri: CALLBACK,
    scope: 'shop/read',
    state: 'st&te= 1',
    code_challenge: PKCE.challenge,
    code_challenge_method: 'S256',
  };
  const sent = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...good, ...changes })) {
    for (const each of value === undefined ? [] : [value].flat()) sent.append(name, each as string);
  }
  return sent;
}

/** The stores, but each method of a broken one fails, and that of a silent one once it is done. */
function breakable(
  stores: Stores,
  {
    broken,
    silent,
    calls,
  }: {
    readonly broken: ReadonlyMap<keyof Stores, unknown>;
    readonly silent: ReadonlySet<keyof Stores>;
    readonly calls: string[];
  },
): Stores {
  const entries = Object.entries(stores).map(([name, store]) => [
    name,
    new Proxy(store as object, {
      get(target, method, receiver) {
        calls.push(`${name}.${String(method)}`);
        if (broken.has(name as keyof Stores)) {
          return async () => {
            throw broken.get(name as keyof Stores) ?? new StoreUnavailableError(`${name}.${String(method)}`);
          };
        }
        const value: unknown = Reflect.get(target, method, receiver);
        if (typeof value !== 'function') return value;
        if (!silent.has(name as keyof Stores)) return value.bind(target);
        return async (...given: readonly unknown[]) => {
          await value.apply(target, given);
          throw new StoreUnavailableError(`${name}.${String(method)}`);
        };
      },
    }),
  ]);
  return Object.fromEntries(entries) as Stores;
}
