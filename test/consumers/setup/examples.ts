// `examples/consumers/` as its pages show it: the manifest of a client, admitted as by `grantry check`, the Secret that is
// written for it, and the configuration of its program, with the addresses of a test in place of those of the examples.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import {
  clientSecretManifest,
  hasGeneratedSecret,
} from '../../../src/admission/client-secrets/client-secret-manifest.ts';
import type { ClientVerdict } from '../../../src/admission/clients/admit-client.ts';
import { validateManifests } from '../../../src/folder-registry/manifest-verdicts.ts';
import { ManifestFolder } from '../../../src/manifests/manifest-folder.ts';
import type { ManifestObject } from '../../../src/manifests/objects.ts';
import { CLIENT_AUTH_METHODS } from '../../../src/oauth/client-auth/index.ts';
import { secretVerifier } from '../../../src/oauth/registry/client-secret.ts';
import type { TestClient } from '../../grantry.ts';

const FOLDER = join(import.meta.dirname, '../../../examples/consumers');
const SECRET = 'a-secret-of-more-than-thirty-two-bytes';
/** 32 bytes in base64url. */
const RANDOM_VALUE = 'cmFuZG9tIHZhbHVlIG9mIDMyIGJ5dGVzIGluIGFsbCE';

/** The issuer of every example. */
export const EXAMPLE_ISSUER = 'https://id.example.com';

/** The addresses of a test by those of the examples, such as `https://grafana.example.com`. */
export type Addresses = Readonly<Record<string, string>>;

export interface ExampleWishes {
  /** That of {@link EXAMPLE_ISSUER} is among them. */
  readonly addresses: Addresses;
  /** Members of `spec` in place of those of the manifest. */
  readonly spec?: Readonly<Record<string, unknown>>;
}

/** A client as grantry serves it, and its Secret. */
export interface ExampleClient {
  readonly client: TestClient;
  /** The data of the Secret by key; empty for a client without a secret. */
  readonly secret: Readonly<Record<string, string>>;
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
   * @throws for a fault of the file as it is; no policy counts for the addresses of a test, which may be http on loopback
   */
  async client(program: string, { addresses, spec = {} }: ExampleWishes): Promise<ExampleClient> {
    const file = join(program, 'client.yaml');
    await verdictOn(file, this.#text(file), undefined);
    const [manifest, ...more] = parseAllDocuments(this.file(file, addresses))
      .map((document) => document.toJS() as { readonly kind: string; readonly spec: object })
      .filter(({ kind }) => kind === 'OAuthClient');
    if (manifest === undefined || more.length > 0) throw new Error(`${file} has not one client`);
    const changed = { ...manifest, spec: { ...manifest.spec, ...spec } };
    return exampleClient(await verdictOn(file, JSON.stringify(changed), addresses[EXAMPLE_ISSUER]), addresses);
  }

  /** The text of a file, such as `apache/apache.conf`. @throws where an address of the examples is left */
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

/** @param issuer undefined for addresses as the example has them: then policies count */
async function verdictOn(
  file: string,
  text: string,
  issuer: string | undefined,
): Promise<ClientVerdict<ManifestObject>> {
  const files = new Map([[file, Buffer.from(text)]]);
  const set = await new ManifestFolder().update({ files, directories: new Set(), faults: [] });
  const { faults, clients } = await validateManifests(set, {
    issuer,
    supportedAuthMethods: [...CLIENT_AUTH_METHODS.keys()],
    unknownFields: 'refuse',
    now: Date.now(),
    classes: 'every',
    releaseNamespace: undefined,
    reservedNamespace: undefined,
    defaultPolicy: issuer === undefined ? 'Baseline' : 'AllowAll',
    references: { verifiersOf: (uid) => [secretVerifier(uid, SECRET)], assumeMissing: true },
    programmed: { status: 'True', reason: 'NotObserved', message: 'Read by a test.' },
    reachable: { status: 'Unknown', reason: 'NotObserved', message: 'Read by a test.' },
    userFiles: 'check',
  });
  const [verdict] = clients;
  if (faults.length > 0 || verdict?.client === undefined) {
    throw new Error(`${file}: not a good client: ${JSON.stringify(faults)}`);
  }
  return verdict;
}

function exampleClient(verdict: ClientVerdict<ManifestObject>, addresses: Addresses): ExampleClient {
  const { object, manifest, client, clientId } = verdict;
  if (client === undefined || manifest === undefined) throw new Error(`${clientId} is refused`);
  if (!hasGeneratedSecret(manifest.spec)) return { client, secret: {} };
  const randomKeys = manifest.spec.auth.clientSecret?.randomKeys ?? [];
  const { stringData } = clientSecretManifest({
    object,
    manifest,
    facts: { clientId, clientSecret: SECRET, issuer: addresses[EXAMPLE_ISSUER] ?? '' },
    randomValues: Object.fromEntries(randomKeys.map((key) => [key, RANDOM_VALUE])),
  });
  return { client: { ...client, secret: SECRET }, secret: stringData };
}
