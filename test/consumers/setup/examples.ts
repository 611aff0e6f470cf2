// `examples/consumers/` as its pages show it: the manifest of a client, by the judge of `grantry check`, and the configuration
// of its program, both with the addresses of a test in place of those of the examples.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { ManifestFolder } from '../../../src/manifests/manifest-folder.ts';
import { CLIENT_AUTH_METHODS } from '../../../src/oauth/client-auth/index.ts';
import type { Client } from '../../../src/oauth/registry/client.ts';
import { secretVerifier } from '../../../src/oauth/registry/client-secret.ts';
import { judgeManifests } from '../../../src/processes/check/manifest-verdicts.ts';
import type { IdTokenAlgorithm } from './provider.ts';

const FOLDER = join(import.meta.dirname, '../../../examples/consumers');

/** The issuer of every example. */
export const EXAMPLE_ISSUER = 'https://login.example.com';

/** The addresses of a test by those of the examples, such as `https://grafana.example.com`. */
export type Addresses = Readonly<Record<string, string>>;

export interface ExampleWishes {
  readonly addresses: Addresses;
  /** In place of a generated one. */
  readonly secret?: string;
  /** In place of that of the manifest, for ID tokens. */
  readonly algorithm?: IdTokenAlgorithm;
}

/** A folder with one folder for each program. */
export class Examples {
  readonly #root: string;

  /** @param root default: `examples/consumers` */
  constructor(root = FOLDER) {
    this.#root = root;
  }

  /**
   * The client of `<program>/client.yaml`.
   * @throws for a fault of the manifest as it is, with the `policy.yaml` of its folder or of all; no policy counts for the
   * addresses of a test, which may be http on loopback
   */
  async client(program: string, wishes: ExampleWishes): Promise<Client & { readonly secret?: string }> {
    const manifest = join(program, 'client.yaml');
    const policies = ['policy.yaml', join(program, 'policy.yaml')].filter((file) => existsSync(join(this.#root, file)));
    const shown = new Map([manifest, ...policies].map((file) => [file, this.#text(file)]));
    await clientIn(shown, { ...wishes, addresses: {} }, 'Baseline');
    const replaced = new Map([[manifest, this.file(manifest, wishes.addresses)]]);
    const client = await clientIn(replaced, wishes, 'AllowAll');
    return wishes.secret === undefined ? client : { ...client, secret: wishes.secret };
  }

  /** The text of a file, such as `apache/httpd.conf`. @throws where an address of the examples is left */
  file(name: string, addresses: Addresses): string {
    // The longest first: one may be the begin of another.
    const entries = Object.entries(addresses).sort(([a], [b]) => b.length - a.length);
    const text = entries.reduce((replaced, [from, to]) => replaced.replaceAll(from, to), this.#text(name));
    const [left] = /https:\/\/[a-z0-9.-]+\.example\.com/.exec(text) ?? [];
    if (left !== undefined) throw new Error(`${name}: no address for ${left}`);
    return text;
  }

  #text(name: string): string {
    return readFileSync(join(this.#root, name), 'utf8');
  }
}

/** The one client of these texts. */
async function clientIn(
  texts: ReadonlyMap<string, string>,
  { addresses, secret, algorithm }: ExampleWishes,
  defaultPolicy: 'Baseline' | 'AllowAll',
): Promise<Client> {
  const files = [...texts].map(([file, text]) => [file, Buffer.from(withAlgorithm(text, algorithm))] as const);
  const set = await new ManifestFolder().update({ files: new Map(files), directories: new Set(), faults: [] });
  const { faults, clients } = await judgeManifests(set, {
    issuer: addresses[EXAMPLE_ISSUER],
    supportedAuthMethods: [...CLIENT_AUTH_METHODS.keys()],
    unknownFields: 'refuse',
    now: Date.now(),
    classes: 'every',
    releaseNamespace: undefined,
    defaultPolicy,
    references: {
      verifiersOf: (uid) => (secret === undefined ? [] : [secretVerifier(uid, secret)]),
      assumeMissing: true,
    },
    programmed: { status: 'True', reason: 'NotObserved', message: 'Read by a test.' },
    userFiles: 'check',
  });
  const [client, ...more] = clients.map((verdict) => verdict.client);
  if (faults.length > 0 || client === undefined || more.length > 0) {
    throw new Error(`${[...texts.keys()].join(', ')}: not one good client: ${JSON.stringify(faults)}`);
  }
  return client;
}

function withAlgorithm(text: string, algorithm: IdTokenAlgorithm | undefined): string {
  const documents = parseAllDocuments(text);
  for (const document of documents) {
    if (algorithm !== undefined && document.get('kind') === 'OAuthClient') {
      document.setIn(['spec', 'tokens', 'idTokenSigningAlgorithm'], algorithm);
    }
  }
  return documents.map(String).join('---\n');
}
