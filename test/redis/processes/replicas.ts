// Replicas of the real program: `grantry dev` several times on one folder of manifests and one Redis, people who are signed
// in at all of them, and what a client can ask of each.

import { hash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { s256 } from '../../../src/oauth/values/pkce.ts';
import { answerIn } from '../../clients/person.ts';
import { freePort } from '../../free-port.ts';
import { TestBrowser } from '../../http/sign-in/sign-in-browser.ts';
import { GrantryProcess } from '../../processes/grantry-process.ts';

const VERIFIER = 'verifier'.repeat(6);
const CALLBACK = 'https://shop.example/cb';
/** The people who can sign in: in a Cluster of three equal parts, what each of them has is in another one. */
export const PEOPLE = ['ann', 'nina', 'carol'] as const;

export type PersonName = (typeof PEOPLE)[number];

const PASSWORD = 'the password of a person';

/** Clients: all confidential, allowed to skip the consent page; they differ in their tokens and in the grace. */
export type ClientName = 'jwt' | 'opaque' | 'graceless' | 'shortgrace' | 'twosecondgrace' | 'longgrace';

const TOKENS: Readonly<Record<ClientName, string>> = {
  jwt: '{}',
  opaque: '{accessTokenFormat: opaque}',
  graceless: '{refreshTokenReuseGrace: 0s}',
  shortgrace: '{refreshTokenReuseGrace: 1s}',
  twosecondgrace: '{refreshTokenReuseGrace: 2s}',
  longgrace: '{refreshTokenReuseGrace: 60s}',
};

/** Every client there is. */
const CLIENT_NAMES = Object.keys(TOKENS) as readonly ClientName[];

const POLICY = `apiVersion: grantry.dev/v1alpha1
kind: ClientPolicy
metadata: {name: of-tests}
spec:
  namespaceSelector: {}
  allow: {consentSkip: true}
`;

function manifest(name: ClientName): string {
  return `---
apiVersion: grantry.dev/v1alpha1
kind: OAuthClient
metadata: {name: ${name}, uid: ${uidOf(name)}}
spec:
  grantTypes: [authorization_code, refresh_token]
  auth: {method: client_secret_basic, clientSecret: {source: Generate}}
  redirectUris: ['${CALLBACK}']
  scopes: [default/read]
  defaultScopes: [default/read]
  consent: Skip
  tokens: ${TOKENS[name]}
`;
}

/** The uid of a client, by which Redis knows it. */
export function uidOf(name: ClientName): string {
  return `uid-${name}`;
}

/** What came back: the status is 0 when nothing did. */
export interface ClientAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  /** The header, where there is one. */
  readonly retryAfter?: string | undefined;
}

/** One line of the audit stream. */
export interface AuditLine {
  readonly event: string;
  /** ISO 8601. */
  readonly time: string;
  readonly grantId?: string;
}

/** One replica; a client asks it with {@link Replica.post}. */
export interface Replica {
  readonly name: string;
  post(client: ClientName, path: string, form: Readonly<Record<string, string>>): Promise<ClientAnswer>;
  /** Has a person ask for a code, the first one by default; undefined when the replica could not give one. */
  issueCode(client: ClientName, person?: PersonName): Promise<string | undefined>;
  /** All that this replica has said to the audit stream, in its former lives too. */
  audits(): readonly AuditLine[];
  /** SIGSTOP and SIGCONT. */
  pause(): void;
  resume(): void;
  /** SIGKILL; `start()` restarts it. */
  kill(): Promise<void>;
  start(): Promise<void>;
}

export interface Replicas {
  readonly all: readonly Replica[];
  stop(): Promise<void>;
}

/** The form that redeems a code. */
export function redemption(code: string): Readonly<Record<string, string>> {
  return { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: VERIFIER };
}

/** The form that refreshes. */
export function refreshing(token: unknown): Readonly<Record<string, string>> {
  return { grant_type: 'refresh_token', refresh_token: String(token) };
}

/** The name that audit lines have for the grant of a code or a refresh token. */
export function grantIdOf(handle: unknown): string {
  const [, shard = '', family = ''] = String(handle).split('.');
  return `${shard}.${hash('sha256', family, 'base64url')}`;
}

/** Starts so many replicas, one after the other. @param environment variables of all of them, where Redis is among them */
export async function startReplicas(
  count: number,
  environment: Readonly<Record<string, string>>,
  requestLimit = 10_000,
): Promise<Replicas> {
  const folder = await mkdtemp(join(tmpdir(), 'grantry-replicas-'));
  await writeFile(join(folder, 'all.yaml'), POLICY + CLIENT_NAMES.map(manifest).join(''));
  const all: ReplicaProcess[] = [];
  const stop = async () => {
    await Promise.all(all.map((replica) => replica.kill()));
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const shared = { folder, environment, requestLimit, cookies: new Map<PersonName, Map<string, string>>() };
    const issuer = `http://localhost:${await freePort()}`;
    while (all.length < count) {
      const replica = new ReplicaProcess({ ...shared, name: `replica ${all.length + 1}`, issuer });
      all.push(replica);
      await replica.start();
    }
    return { all, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

const MOST_STARTS = 5;

interface ReplicaOptions {
  readonly name: string;
  readonly folder: string;
  /** No replica listens on its port: browsers go to the replica they mean. */
  readonly issuer: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Of each person, shared by their browsers: a session is good at every replica. */
  readonly cookies: Map<PersonName, Map<string, string>>;
  /** How long a client waits for an answer, in milliseconds. */
  readonly requestLimit: number;
}

class ReplicaProcess implements Replica {
  readonly name: string;
  readonly #options: ReplicaOptions;
  readonly #formerOutputs: string[] = [];
  readonly #secrets = new Map<ClientName, string>();
  #process: GrantryProcess | undefined;
  #port: number | undefined;

  constructor(options: ReplicaOptions) {
    this.name = options.name;
    this.#options = options;
  }

  async start(): Promise<void> {
    for (let starts = 1; ; starts++) {
      this.#port ??= await freePort();
      try {
        return await this.#startOn(this.#port);
      } catch (error) {
        // Another process took it in between.
        if (starts === MOST_STARTS || !/port \d+ on \S+ is in use/.test(String(error))) throw error;
        this.#port = undefined;
      }
    }
  }

  async #startOn(port: number): Promise<void> {
    const { folder, environment, issuer } = this.#options;
    if (this.#process !== undefined) this.#formerOutputs.push(this.#process.output);
    const settings = { GRANTRY_LOG_FORMAT: 'json', GRANTRY_RATE_LIMITS: 'off', GRANTRY_LOG_LEVEL: 'error' };
    const people = PEOPLE.flatMap((person) => ['--user', `${person}:${PASSWORD}`]);
    const flags = ['--port', `${port}`, '--issuer', issuer, ...people];
    this.#process = new GrantryProcess(['dev', folder, ...flags], { environment: { ...settings, ...environment } });
    await this.#process.printed(/Admin +http:/);
    for (const name of CLIENT_NAMES) {
      const file = join(folder, `.grantry/secrets/default.${name}.secret`);
      this.#secrets.set(name, (await readFile(file, 'utf8')).trimEnd());
    }
  }

  async post(client: ClientName, path: string, form: Readonly<Record<string, string>>): Promise<ClientAnswer> {
    const credentials = Buffer.from(`default.${client}:${this.#secrets.get(client)}`).toString('base64');
    try {
      const response = await fetch(`${this.#address}${path}`, {
        method: 'POST',
        body: new URLSearchParams(form),
        headers: { authorization: `Basic ${credentials}` },
        signal: AbortSignal.timeout(this.#options.requestLimit),
      });
      const text = await response.text();
      const body = text === '' ? {} : (JSON.parse(text) as ClientAnswer['body']);
      return { status: response.status, body, retryAfter: response.headers.get('retry-after') ?? undefined };
    } catch {
      return { status: 0, body: {} };
    }
  }

  async issueCode(client: ClientName, person: PersonName = PEOPLE[0]): Promise<string | undefined> {
    const { issuer, cookies } = this.#options;
    const url = new URL(`${issuer}/authorize`);
    url.search = new URLSearchParams({
      response_type: 'code',
      client_id: `default.${client}`,
      redirect_uri: CALLBACK,
      code_challenge: s256(VERIFIER),
      code_challenge_method: 'S256',
    }).toString();
    const browser = new TestBrowser(this.#address, issuer);
    for (const [name, value] of cookies.get(person) ?? []) browser.cookies.set(name, value);
    const answers = { username: person, password: PASSWORD, decision: 'allow' } as const;
    const back = await answerIn(browser, url, answers).catch(() => undefined);
    cookies.set(person, new Map([...(cookies.get(person) ?? []), ...browser.cookies]));
    return back?.searchParams.get('code') ?? undefined;
  }

  audits(): readonly AuditLine[] {
    const lines = [...this.#formerOutputs, this.#process?.output ?? ''].flatMap((output) => output.split('\n'));
    return lines.filter((line) => line.includes('"stream":"audit"')).map((line) => JSON.parse(line) as AuditLine);
  }

  pause(): void {
    this.#process?.signal('SIGSTOP');
  }

  resume(): void {
    this.#process?.signal('SIGCONT');
  }

  async kill(): Promise<void> {
    await this.#process?.end('SIGKILL');
  }

  get #address(): string {
    return `http://127.0.0.1:${this.#port}`;
  }
}
