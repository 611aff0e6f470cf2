// Reconciles all SigningKeys of the release namespace while this process leads: maps each change to the rings that it
// queues. One ring is reconciled in key-reconciler.ts.

import type { Logger } from 'pino';
import { readKeySecret, SIGNING_KEY_LABEL } from '../../admission/keys/key-secret.ts';
import { revokedKeyIds } from '../../admission/keys/served-keys.ts';
import type { KubernetesApi } from '../../kubernetes/api/kubernetes-api.ts';
import { objectKey } from '../../kubernetes/objects/resources.ts';
import { sourceOf } from '../../kubernetes/objects/source-object.ts';
import type { ObjectChange } from '../../kubernetes/watch/object-store.ts';
import type { SharedReflector } from '../../kubernetes/watch/shared-reflector.ts';
import type { Clock } from '../../oauth/ports/ports.ts';
import type { LeaderApi } from '../leadership/leader-api.ts';
import type { EventFacts } from '../reconciling/events.ts';
import { KindController } from '../reconciling/kind-controller.ts';
import type { ReconcileMetrics } from '../reconciling/work-queue.ts';
import type { ObservedReplicas } from '../replicas/observed-replicas.ts';
import { KeyReconciler } from './key-reconciler.ts';

export interface KeyControllerOptions {
  readonly api: LeaderApi;
  /** Lists without a lease, as the watches do. */
  readonly reader: Pick<KubernetesApi, 'list'>;
  /** The watches; each has completed its first list. */
  readonly sources: {
    /** SigningKeys of the release namespace. */
    readonly signingKeys: SharedReflector;
    /** Those Secrets of the release namespace that are parts of grantry. */
    readonly releaseSecrets: SharedReflector;
  };
  readonly releaseNamespace: string;
  readonly observed: ObservedReplicas;
  readonly record: (event: EventFacts) => void;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'error'>;
  readonly metrics: ReconcileMetrics;
}

export class KeyController extends KindController {
  readonly #options: KeyControllerOptions;
  readonly #reconciler: KeyReconciler;

  constructor(options: KeyControllerOptions) {
    const { sources, observed: replicas, log, metrics } = options;
    // One at a time: how many keys may be published is a limit of all rings.
    super({ kind: 'SigningKey', log, metrics, workers: 1 });
    this.#options = options;
    const { signingKeys, releaseSecrets: secrets } = sources;
    this.#reconciler = new KeyReconciler({ ...options, signingKeys, secrets, replicas });
  }

  protected reconcile(key: string) {
    return this.#reconciler.reconcile(key);
  }

  protected listen() {
    const { signingKeys, releaseSecrets } = this.#options.sources;
    return [
      signingKeys.listen((change) => this.#signingKeyChanged(change)),
      releaseSecrets.listen((change) => this.#secretChanged(change)),
    ];
  }

  /** Of the default rings those that are missing too, which are created. */
  protected begin(): void {
    const { signingKeys, releaseSecrets } = this.#options.sources;
    this.#addMissingRings();
    for (const { metadata } of signingKeys.objects()) this.queue.add(objectKey(metadata));
    for (const object of releaseSecrets.objects()) this.#addRingOf(object);
  }

  #signingKeyChanged({ key, object }: ObjectChange): void {
    this.queue.add(key);
    // If it was the last one, or the last one of RS256 in its former algorithm, a default ring is created.
    this.#addMissingRings();
    for (const keyId of revokedKeyIds([sourceOf(object)])) this.#addRingsWith(keyId);
  }

  #secretChanged({ object, before }: ObjectChange): void {
    this.#addRingOf(object);
    if (before !== undefined) this.#addRingOf(before);
    const keyId = readKeySecret(object)?.keyId;
    if (keyId !== undefined) this.#addRingsWith(keyId);
  }

  #addMissingRings(): void {
    for (const ring of this.#reconciler.missingRings) this.queue.add(ring);
  }

  #addRingsWith(keyId: string): void {
    for (const ring of this.#reconciler.ringsWith(keyId)) this.queue.add(ring);
  }

  #addRingOf({ metadata }: ObjectChange['object']): void {
    const name = metadata.labels?.[SIGNING_KEY_LABEL];
    if (name !== undefined) this.queue.add(objectKey({ namespace: this.#options.releaseNamespace, name }));
  }
}
