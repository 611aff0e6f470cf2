// Executes the steps of a plan: makes, changes or removes one key, and records an Event of it.

import type { KeyVerdict } from '../../admission/keys/admit-key.ts';
import type { StoredKey } from '../../admission/keys/key-secret.ts';
import type { KubernetesObject } from '../../kubernetes/objects/resources.ts';
import type { Clock } from '../../oauth/ports/ports.ts';
import { generateSigningKeyPem, importSigningKey } from '../../oauth/registry/keys.ts';
import type { EventFacts } from '../reconciling/events.ts';
import type { DesiredRing, KeyStep } from './key-plan.ts';
import type { KeySecrets, KeySecretTemplate } from './key-secrets.ts';

/** The state of a ring in one reconcile. */
export interface Ring {
  readonly object: KubernetesObject;
  readonly verdict: KeyVerdict;
  readonly desired: DesiredRing;
  readonly template: KeySecretTemplate;
  /** The imported key as it stands in its Secret. */
  readonly importedPem: string | undefined;
  readonly secrets: KeySecrets;
}

export interface KeyStepsOptions {
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
    const { record } = this.#options;
    const { secrets } = ring;
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
    const { object, verdict, desired } = ring;
    const bits = verdict.manifest?.spec.rsaModulusBits;
    const pem = ring.importedPem ?? (await generateSigningKeyPem(desired.algorithm, bits));
    const { kid: keyId } = await importSigningKey(pem, desired.algorithm, 'Published');
    const now = this.#options.clock.now();
    const key: StoredKey = {
      signingKeyName: object.metadata.name,
      keyId,
      algorithm: desired.algorithm,
      state,
      publishedAt: now,
      activatedAt: state === 'Active' ? now : undefined,
      removeAfter: undefined,
      handledRotateAt,
    };
    await ring.secrets.make(key, pem);
    return key;
  }
}
