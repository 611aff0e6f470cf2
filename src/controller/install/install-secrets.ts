// The Secrets of which an install has one, such as the pepper and the signing secret of alerts. The leader creates each
// where it is missing and never changes it. They have no owner reference, so neither an upgrade nor an uninstall
// deletes them. A deleted Secret is created again with its last value (lost-secrets.ts), since another pepper voids
// every session. Where no controller observed that value, the leader generates a new one and reports the loss by an
// error log line and an Event.

import type { Logger } from 'pino';
import { readSecretValue } from '../../admission/references/references.ts';
import { PART_LABEL, type SingleSecret } from '../../admission/references/secret-parts.ts';
import { KubernetesError } from '../../kubernetes/api/kubernetes-api.ts';
import { type KubernetesObject, objectKey, SECRETS } from '../../kubernetes/objects/resources.ts';
import type { SharedReflector } from '../../kubernetes/watch/shared-reflector.ts';
import type { Random } from '../../oauth/ports/ports.ts';
import type { LeaderApi } from '../leadership/leader-api.ts';
import type { EventFacts } from '../reconciling/events.ts';
import { KindController } from '../reconciling/kind-controller.ts';
import type { ReconcileMetrics } from '../reconciling/work-queue.ts';
import type { LostSecrets } from './lost-secrets.ts';

export interface InstallSecretsOptions {
  readonly api: LeaderApi;
  readonly sources: {
    /** Those Secrets of the release namespace that are parts of grantry; listed once. */
    readonly releaseSecrets: Pick<SharedReflector, 'get' | 'objects' | 'listen'>;
  };
  readonly releaseNamespace: string;
  /** The Secrets that the controller is to provide. */
  readonly wanted: readonly SingleSecret[];
  readonly lost: LostSecrets;
  readonly record: (event: EventFacts) => void;
  readonly random: Random;
  readonly log: Pick<Logger, 'error'>;
  readonly metrics: ReconcileMetrics;
}

const SECRET_BYTES = 32;

/** The consequence of a new value, by part. */
const LOSSES: Partial<Readonly<Record<SingleSecret['part'], string>>> = {
  pepper:
    'No controller knew its value, so there is another one. Token servers that start from now on void every session, code and refresh token from before; restore the old value and restart them to undo that.',
  webhook: 'No controller knew its value, so there is another one. Receivers of alerts need it.',
};

export class InstallSecrets extends KindController {
  readonly #options: InstallSecretsOptions;
  /** By name: fulfilled after the first reconcile. */
  readonly #firstAttempts: ReadonlyMap<string, PromiseWithResolvers<void>>;
  /** Whether a verifier or signing key existed at the start: those are created only after these Secrets. */
  #isExistingInstall = false;

  constructor(options: InstallSecretsOptions) {
    const { log, metrics, wanted } = options;
    super({ kind: 'install secret', log, metrics });
    this.#options = options;
    this.#firstAttempts = new Map(wanted.map(({ name }) => [name, Promise.withResolvers<void>()]));
  }

  protected listen() {
    const { sources, wanted } = this.#options;
    const end = sources.releaseSecrets.listen(({ type, object }) => {
      const { name } = object.metadata;
      if (type === 'delete' && wanted.some((secret) => secret.name === name)) this.queue.add(name);
    });
    return [end];
  }

  protected begin(): void {
    const { sources, wanted } = this.#options;
    this.#isExistingInstall = [...sources.releaseSecrets.objects()].some(({ metadata }) =>
      ['verifier', 'signing-key'].includes(metadata.labels?.[PART_LABEL] ?? ''),
    );
    for (const { name } of wanted) this.queue.add(name);
  }

  /**
   * Fulfilled when each Secret exists, or its first attempt failed. The other objects of an install are to be created
   * after that: a leader that finds them takes a missing Secret for lost.
   */
  async whenTried(): Promise<void> {
    await Promise.all([...this.#firstAttempts.values()].map(({ promise }) => promise));
  }

  protected async reconcile(name: string): Promise<undefined> {
    try {
      return await this.#create(name);
    } finally {
      this.#firstAttempts.get(name)?.resolve();
    }
  }

  async #create(name: string): Promise<undefined> {
    const { api, sources, releaseNamespace: namespace, wanted, random } = this.#options;
    const secret = wanted.find((each) => each.name === name);
    if (secret === undefined || sources.releaseSecrets.get(objectKey({ namespace, name })) !== undefined)
      return undefined;
    const lost = this.#lostValue(secret);
    // Determined before the create: the new Secret may already be deleted again when the response arrives.
    const wasThere = this.#isExistingInstall || this.#options.lost.get(name) !== undefined;
    const value = lost ?? Buffer.from(random.bytes(SECRET_BYTES)).toString('base64url');
    try {
      const made = await api.create(SECRETS, {
        metadata: { name, namespace, labels: { [PART_LABEL]: secret.part } },
        type: 'Opaque',
        data: { [secret.key]: Buffer.from(value).toString('base64') },
      });
      if (wasThere && lost === undefined) this.#reportLoss(secret, made);
    } catch (error) {
      if (!(error instanceof KubernetesError && error.reason === 'AlreadyExists')) throw error;
      // Created by another leader and not in the cache yet, or without the label by which token servers list it.
      const present = await api.get(SECRETS, { namespace, name });
      // Deleted meanwhile, without a watch event to requeue it: retry.
      if (present === undefined) throw error;
      if (present.metadata.labels?.[PART_LABEL] !== secret.part) {
        throw new Error(`the Secret ${name} has no label ${PART_LABEL}: ${secret.part}; add it, or remove the Secret`);
      }
    }
    return undefined;
  }

  #reportLoss({ name, part }: SingleSecret, made: KubernetesObject): void {
    const { log, record } = this.#options;
    const note = LOSSES[part];
    if (note === undefined) return;
    log.error({ secret: name }, `the Secret ${name} was gone: ${note}`);
    record({ regarding: made, type: 'Warning', reason: 'InstallSecretLost', action: 'Create', note });
  }

  /** The value of a Secret before its deletion; undefined when it is unknown or unusable. */
  #lostValue({ name, key }: SingleSecret): string | undefined {
    const lost = this.#options.lost.get(name);
    const found = lost && readSecretValue(lost, key, true);
    return found?.outcome === 'found' && found.value.trim().length >= SECRET_BYTES ? found.value : undefined;
  }
}
