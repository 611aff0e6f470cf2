// The steps of a plan carried out: one key made, changed or removed, and told in an Event.

import type { KeyVerdict } from '../../admission/keys/admit-key.ts';
import type { StoredKey } from '../../admission/keys/key-secret.ts';
import type { KubernetesObject } from '../../kubernetes/objects/resources.ts';
import type { Clock } from '../../oauth/ports/ports.ts';
import { generateSigningKeyPem, importSigningKey } from '../../oauth/registry/keys.ts';
import type { EventFacts } from '../reconciling/events.ts';
import type { KeyStep, RingWishes } from './key-plan.ts';
import type { KeySecrets, KeySecretTemplate } from './key-secrets.ts';

/** What is known of a ring in one look. */
export interface Ring {
  readonly object: KubernetesObject;
  readonly verdict: KeyVerdict;
  readonly wishes: RingWishes;
  readonly template: KeySecretTemplate;
  /** The imported key as it stands in its Secret. */
  readonly importedPem: string | undefined;
}

export interface KeyStepsOptions {
  readonly secrets: KeySecrets;
  readonly record: (event: EventFacts) => void;
  readonly clock: Clock;
}

const EVENTS = {
  Published: { reason: 'KeyPublished', does: 'is published' },
  Active: { reason: 'KeyActivated', does: 'signs from now on' },
  Retiring: { reason: 'KeyRetired', does: 'signs no more and verifies until its last token has died' },
  Revoked: { reason: 'KeyRevoked', does: 'was revoked' },
} as const;

export class KeySteps {
  readonly #options: KeyStepsOptions;

  constructor(options: KeyStepsOptions) {
    this.#options = options;
  }

  async take(step: KeyStep, ring: Ring): Promise<void> {
    const { secrets, record } = this.#options;
    if (step.do === 'remove') {
      await secrets.remove(step.key);
      const note = `The key ${step.key.keyId} was removed.`;
      record({ regarding: ring.object, type: 'Normal', reason: 'KeyRemoved', action: 'Remove', note });
      return;
    }
    const key = step.do === 'make' ? await this.#make(step, ring) : step.key;
    if (step.do === 'put') await secrets.put(key, ring.template);
    const { reason, does } = EVENTS[key.state];
    const action = key.state === 'Revoked' ? 'Revoke' : 'Rotate';
    record({ regarding: ring.object, type: 'Normal', reason, action, note: `The key ${key.keyId} ${does}.` });
  }

  async #make({ state, handledRotateAt }: KeyStep & { readonly do: 'make' }, ring: Ring): Promise<StoredKey> {
    const { object, verdict, wishes } = ring;
    const bits = verdict.manifest?.spec.rsaModulusBits;
    const pem = ring.importedPem ?? (await generateSigningKeyPem(wishes.algorithm, bits));
    const { kid: keyId } = await importSigningKey(pem, wishes.algorithm, 'Published');
    const now = this.#options.clock.now();
    const key: StoredKey = {
      signingKey: object.metadata.name,
      keyId,
      algorithm: wishes.algorithm,
      state,
      publishedAt: now,
      activatedAt: state === 'Active' ? now : undefined,
      removeAfter: undefined,
      handledRotateAt,
    };
    await this.#options.secrets.make(key, pem);
    return key;
  }
}
