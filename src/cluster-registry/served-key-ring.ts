// The key ring of a token server, rebuilt after each change of a SigningKey or a key Secret. Material is read
// asynchronously; a change in the meantime causes another rebuild.

import type { Logger } from 'pino';
import type { StoredKey } from '../admission/keys/key-secret.ts';
import { readManifest } from '../admission/kinds/manifest.ts';
import { SIGNING_KEY } from '../admission/kinds/signing-key.ts';
import type { ObjectView } from '../kubernetes/watch/shared-reflector.ts';
import { KeyRing } from '../oauth/registry/keys.ts';
import type { ReleaseSecrets } from './release-secrets.ts';

/** The key that signs. Times are epoch milliseconds. */
export interface SigningKeyAge {
  readonly activatedAt: number | undefined;
  /** When the next key becomes active; undefined without a scheduled rotation. */
  readonly nextRotation: number | undefined;
}

interface ServedKeyRingOptions {
  readonly releaseNamespace: string;
  readonly signingKeys: ObjectView;
  readonly secrets: Pick<ReleaseSecrets, 'ringOf'>;
  readonly log: Pick<Logger, 'error'>;
}

export class ServedKeyRing {
  readonly #options: ServedKeyRingOptions;
  #ring = new KeyRing([]);
  #signing: SigningKeyAge | undefined;
  #isChanged = true;

  constructor(options: ServedKeyRingOptions) {
    this.#options = options;
  }

  get current(): KeyRing {
    return this.#ring;
  }

  /** The key that signs; undefined without one. */
  get signingKey(): SigningKeyAge | undefined {
    return this.#signing;
  }

  /** Whether the ring is older than the objects. */
  get isChanged(): boolean {
    return this.#isChanged;
  }

  changed(): void {
    this.#isChanged = true;
  }

  /** Rebuilds the ring from the objects. It stays changed when it throws. */
  async renew(): Promise<void> {
    const { secrets, signingKeys, log } = this.#options;
    this.#isChanged = false;
    try {
      const { ring, signing } = await secrets.ringOf(signingKeys.objects(), (secret, fault) =>
        log.error({ secret }, `a signing key cannot be used: ${fault}`),
      );
      this.#ring = ring;
      this.#signing = signing && this.#ageOf(signing);
    } catch (error) {
      this.#isChanged = true;
      throw error;
    }
  }

  #ageOf({ signingKeyName, activatedAt }: StoredKey): SigningKeyAge {
    const { signingKeys, releaseNamespace } = this.#options;
    const object = signingKeys.get(`${releaseNamespace}/${signingKeyName}`);
    const rotation = readManifest(SIGNING_KEY.ignore, object).manifest?.spec.rotation;
    const isPlanned = activatedAt !== undefined && rotation?.policy === 'Scheduled';
    return { activatedAt, nextRotation: isPlanned ? activatedAt + rotation.interval * 1000 : undefined };
  }
}
