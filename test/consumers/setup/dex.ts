// Dex with everything in memory: with one person of its configuration an OpenID provider that grantry signs people in by, or that
// a browser signs in at through its own pages; with another configuration what that makes of it.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { OidcProvider } from '../../../src/oauth/registry/identity-provider.ts';
import { freePort } from '../../free-port.ts';
import type { Page } from '../../http/sign-in/sign-in-browser.ts';
import { anOidcProvider } from '../../login/upstream/providers.ts';
import type { FilledForm } from './provider.ts';
import { ServedProgram } from './served-program.ts';
import type { VisitedProvider } from './visitor.ts';

const CLIENT = { id: 'grantry', secret: 'the secret of grantry!!!!!!!!!!!' };

/** The person that Dex knows. */
export const DEX_PERSON = {
  username: 'ada',
  name: 'Ada Lovelace',
  email: 'ada@corp.example',
  password: 'password',
  groups: ['developers', 'on-call'],
} as const;
/** bcrypt of the password at the least cost that Dex takes. */
const HASH = '$2a$10$2b2cU8CPhOTaGrs1HRQuAueS7JTT5ZHsHSzYiFPm1leZck7Mc8T4W';

export interface DexWishes {
  /** What it is started by. */
  readonly program: string;
  /** The callback address of grantry. */
  readonly callback: string;
  /** Default: a free one. */
  readonly port?: number;
  /** Of the person. Default: those of {@link DEX_PERSON}. */
  readonly groups?: readonly string[];
}

export interface ConfiguredDex {
  readonly program: string;
  readonly port: number;
  /** Its issuer is at `/dex` of the port; storage and address here are not read. */
  readonly configuration: { readonly issuer: string };
  readonly environment: Readonly<Record<string, string>>;
}

export class Dex implements VisitedProvider {
  readonly issuer: string;
  readonly authority = undefined;
  /** It has none: the provider of a visitor names one. */
  readonly endpoints = { endSession: '' };
  readonly #process = new ServedProgram();

  private constructor(issuer: string) {
    this.issuer = issuer;
  }

  /** Starts it with new keys, and waits until it answers. */
  static async start({ program, callback, port, groups = DEX_PERSON.groups }: DexWishes): Promise<Dex> {
    const address = `127.0.0.1:${port ?? (await freePort())}`;
    const dex = new Dex(`http://${address}/dex`);
    await dex.#serve(program, { configuration: configuration({ issuer: dex.issuer, address, callback, groups }) });
    return dex;
  }

  /** The same by a configuration of a page. */
  static async startBy({ program, port, configuration, environment }: ConfiguredDex): Promise<Dex> {
    const dex = new Dex(configuration.issuer);
    const here = { storage: { type: 'memory' }, web: { http: `127.0.0.1:${port}` } };
    await dex.#serve(program, { configuration: Object.assign({}, configuration, here), environment });
    return dex;
  }

  async #serve(
    program: string,
    { configuration, environment = {} }: { configuration: object; environment?: ConfiguredDex['environment'] },
  ): Promise<void> {
    const file = join(this.#process.folder, 'dex.yaml');
    writeFileSync(file, JSON.stringify(configuration));
    const address = `${this.issuer}/.well-known/openid-configuration`;
    await this.#process.start(program, { words: ['serve', file], address, environment });
  }

  /** As the manifest of the guide, for this address. */
  identityProvider(changes: Partial<OidcProvider> = {}): OidcProvider {
    const { id: clientId, secret: clientSecret } = CLIENT;
    const own = {
      name: 'dex',
      uid: 'uid-dex',
      displayName: 'Dex',
      issuer: this.issuer,
      scopes: ['openid', 'profile', 'email', 'groups'],
      groups: { include: ['**'], prefix: 'dex:' },
      credentials: { clientId, clientSecret, authorities: undefined },
    };
    return anOidcProvider(Object.assign(own, changes));
  }

  /** Its form of the password. */
  answerTo({ body }: Pick<Page, 'body'>): FilledForm | undefined {
    const action = /<form method="post" action="([^"]*)"/.exec(body)?.[1];
    if (action === undefined || !body.includes('name="password"')) return undefined;
    const fields = { login: DEX_PERSON.email, password: DEX_PERSON.password };
    return { action: action.replaceAll('&amp;', '&'), fields };
  }

  /** What it printed. */
  get output(): string {
    return this.#process.output;
  }

  async stop(): Promise<void> {
    await this.#process.stop();
  }
}

interface Place {
  readonly issuer: string;
  readonly address: string;
  readonly callback: string;
  readonly groups: readonly string[];
}

function configuration({ issuer, address, callback, groups }: Place): object {
  const { username, name, email } = DEX_PERSON;
  return {
    issuer,
    storage: { type: 'memory' },
    web: { http: address },
    oauth2: { skipApprovalScreen: true },
    enablePasswordDB: true,
    staticPasswords: [{ email, username, name, preferredUsername: username, groups, userID: '4711', hash: HASH }],
    staticClients: [{ id: CLIENT.id, name: 'grantry', secret: CLIENT.secret, redirectURIs: [callback] }],
  };
}
