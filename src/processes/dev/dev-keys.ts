// The signing keys that `grantry dev` keeps in `.grantry/keys/`: a ring for each SigningKey manifest, or `default`
// (ES256) when there is none, and `default-rs256` when none is of RS256. After a change of the algorithm the new key signs
// and the old one still verifies.

import type { KeyVerdict } from '../../admission/keys/admit-key.ts';
import { DEFAULT_SIGNING_KEYS, RS256_SIGNING_KEY } from '../../admission/keys/default-signing-keys.ts';
import { revokedKeyIds } from '../../admission/keys/served-keys.ts';
import { generateSigningKeyPem, importSigningKey, KeyRing, type SigningKey } from '../../oauth/registry/keys.ts';
import type { SigningAlgorithm } from '../../oauth/values/signature.ts';
import type { DevState } from './dev-state.ts';
import { DevStateError } from './dev-state-error.ts';

/** The algorithm that signs when a folder has rings of several. */
const PREFERRED_ALGORITHM: SigningAlgorithm = 'ES256';
const MAX_REVOKED_KEYS = 64;

/** A ring whose keys are kept in files. */
interface Ring {
  readonly name: string;
  readonly algorithm: SigningAlgorithm;
  readonly rsaModulusBits: number;
  readonly revokedKeyIds: readonly string[];
}

/** The file of one key, and how to import it. */
interface KeyFile {
  readonly file: string;
  readonly algorithm: SigningAlgorithm;
  readonly pem: string;
  readonly state: 'Active' | 'Retiring';
}

const KEY_FILE = /^keys\/(?<ring>.+)\.(?<algorithm>ES256|ES384|RS256|PS256|EdDSA)(-\d+)?\.\d+\.pem$/;

export interface DevKeysOptions {
  readonly state: DevState;
  readonly releaseNamespace: string;
}

/** The keys of a folder of manifests. */
export class DevKeys {
  readonly #state: DevState;
  readonly #releaseNamespace: string;
  /** A cache of imported keys by file and state: an import takes a millisecond. */
  readonly #imported = new Map<string, { readonly pem: string; readonly key: SigningKey }>();

  constructor({ state, releaseNamespace }: DevKeysOptions) {
    this.#state = state;
    this.#releaseNamespace = releaseNamespace;
  }

  /**
   * The ring of all SigningKeys of the folder. Missing keys are generated.
   * @throws DevStateError for a key file that cannot be read: the tokens that it signed must not become invalid
   * silently
   */
  async ringOf(verdicts: readonly KeyVerdict[]): Promise<KeyRing> {
    // The newest ring of the preferred algorithm signs.
    const accepted = verdicts
      .filter((verdict) => verdict.accepted)
      .sort((a, b) => rank(b) - rank(a) || b.object.createdAt - a.object.createdAt);
    const objects = verdicts.map(({ object }) => object);
    const revoked = [...revokedKeyIds(objects)];
    const keys: SigningKey[] = [];
    for (const verdict of accepted) keys.push(...(await this.#keysOfVerdict(verdict, revoked)));
    // The last ones: the key of RS256 must not take over the access tokens of a folder.
    for (const { name, spec, isMissing } of DEFAULT_SIGNING_KEYS) {
      const ring = `${this.#releaseNamespace}.${name}`;
      if (isMissing(objects)) {
        keys.push(...(await this.#keysOf({ rsaModulusBits: 0, ...spec, name: ring, revokedKeyIds: revoked })));
      } else if (!objects.some((object) => `${object.namespace}.${object.name}` === ring)) {
        // Tokens signed before the first SigningKey manifest was added stay valid.
        keys.push(...(await this.#retiring(ring, revoked)));
      }
    }
    return new KeyRing(keys);
  }

  async #keysOfVerdict(
    { object, manifest, imported }: KeyVerdict,
    revoked: readonly string[],
  ): Promise<readonly SigningKey[]> {
    if (imported !== undefined) return [imported];
    if (manifest === undefined || manifest.spec.importSecretRef !== undefined) return [];
    return await this.#keysOf({ ...manifest.spec, name: `${object.namespace}.${object.name}`, revokedKeyIds: revoked });
  }

  /** The keys of a ring: the Active one first, then the retiring ones. */
  async #keysOf(ring: Ring): Promise<readonly SigningKey[]> {
    const { algorithm, rsaModulusBits, revokedKeyIds } = ring;
    const size = algorithm === 'RS256' || algorithm === 'PS256' ? `-${rsaModulusBits}` : '';
    for (let number = 1; number <= MAX_REVOKED_KEYS; number++) {
      const file = `keys/${ring.name}.${algorithm}${size}.${number}.pem`;
      const pem = await this.#state.keep(file, async () =>
        (await generateSigningKeyPem(algorithm, rsaModulusBits)).trimEnd(),
      );
      const active = await this.#import({ file, algorithm, pem, state: 'Active' });
      // The file of a revoked key is kept, and the key of the next number is Active.
      if (revokedKeyIds.includes(active.kid)) continue;
      const retiring = await this.#retiring(ring.name, revokedKeyIds);
      return [active, ...retiring.filter((key) => key.kid !== active.kid)];
    }
    return [];
  }

  /** Every key that a ring ever had, for verification. */
  async #retiring(name: string, revokedKeyIds: readonly string[]): Promise<readonly SigningKey[]> {
    const keys: SigningKey[] = [];
    for (const file of await this.#state.list('keys')) {
      const { ring, algorithm } = KEY_FILE.exec(file)?.groups ?? {};
      if (ring !== name || algorithm === undefined) continue;
      const pem = await this.#state.read(file);
      if (pem === undefined) continue;
      // The pattern matches no other algorithm.
      const key = await this.#import({ file, algorithm: algorithm as SigningAlgorithm, pem, state: 'Retiring' });
      if (!revokedKeyIds.includes(key.kid)) keys.push(key);
    }
    return keys;
  }

  async #import({ file, algorithm, pem, state }: KeyFile): Promise<SigningKey> {
    const known = this.#imported.get(`${state} ${file}`);
    if (known?.pem === pem) return known.key;
    const key = await importSigningKey(pem, algorithm, state).catch(() => {
      const path = this.#state.fileOf(file) ?? file;
      const remedy = 'put it back, or remove it and with it all that it signed';
      throw new DevStateError(path, `is not a private key in PEM that fits ${algorithm}; ${remedy}`);
    });
    this.#imported.set(`${state} ${file}`, { pem, key });
    return key;
  }
}

function rank({ object, manifest }: KeyVerdict): number {
  if (object.name === RS256_SIGNING_KEY) return -1;
  return manifest?.spec.algorithm === PREFERRED_ALGORITHM ? 1 : 0;
}
