// The Secrets of which an install has one: the pepper, and what alerts are signed with. Made where there are none, and never
// touched again: nobody owns them, so that neither an upgrade nor an uninstall takes them away. One that somebody deletes is
// made again with the value it had (lost-secrets.ts): another pepper would log everybody out. Where no controller saw that
// value there is another one, and it is said as loudly as can be.

import type { Logger } from 'pino';
import { readSecretValue } from '../../admission/references/references.ts';
import { PART_LABEL, type SingleSecret } from '../../admission/references/secret-parts.ts';
import { KubernetesError } from '../../kubernetes/api/kubernetes-api.ts';
import { type KubernetesObject, objectKey, SECRETS } from '../../kubernetes/objects/resources.ts';
import type { SharedReflector } from '../../kubernetes/watch/shared-reflector.ts';
import type { Random } from '../../oauth/ports/ports.ts';
import type { LeaderApi } from '../leadership/leader-api.ts';
import type { EventFacts } from '../reconciling/events.ts';
import { type ReconcileMetrics, WorkQueue } from '../reconciling/work-queue.ts';
import type { LostSecrets } from './lost-secrets.ts';

export interface InstallSecretsOptions {
  readonly api: LeaderApi;
  readonly sources: {
    /** Those Secrets of the release namespace that are parts of grantry; listed once. */
    readonly releaseSecrets: Pick<SharedReflector, 'get' | 'objects' | 'listen'>;
  };
  readonly releaseNamespace: string;
  /** Those that nobody else provides. */
  readonly wanted: readonly SingleSecret[];
  readonly lost: LostSecrets;
  readonly record: (event: EventFacts) => void;
  readonly random: Random;
  readonly log: Pick<Logger, 'error'>;
  readonly metrics: ReconcileMetrics;
}

const SECRET_BYTES = 32;

/** What it means that there is another value. */
const LOSSES: Partial<Readonly<Record<SingleSecret['part'], string>>> = {
  pepper:
    'No controller knew its value, so there is another one. Token servers that start from now on void every session, code and refresh token from before; restore the old value and restart them to undo that.',
  webhook: 'No controller knew its value, so there is another one. Receivers of alerts need it.',
};

export class InstallSecrets {
  readonly #options: InstallSecretsOptions;
  readonly #queue: WorkQueue;
  /** By name: fulfilled when it was looked at once. */
  readonly #tries: ReadonlyMap<string, PromiseWithResolvers<void>>;
  /** Whether there was something that comes after them. */
  #isOld = false;
  #endListening: (() => void) | undefined;

  constructor(options: InstallSecretsOptions) {
    this.#options = options;
    const { log, metrics, wanted } = options;
    this.#tries = new Map(wanted.map(({ name }) => [name, Promise.withResolvers<void>()]));
    this.#queue = new WorkQueue({
      kind: 'install secret',
      log,
      metrics,
      reconcile: (name) => this.#reconcile(name).finally(() => this.#tries.get(name)?.resolve()),
    });
  }

  get queued(): number {
    return this.#queue.size;
  }

  start(): void {
    const { sources, wanted } = this.#options;
    this.#endListening = sources.releaseSecrets.listen(({ type, object }) => {
      const { name } = object.metadata;
      if (type === 'delete' && wanted.some((secret) => secret.name === name)) this.#queue.add(name);
    });
    this.#isOld = [...sources.releaseSecrets.objects()].some(({ metadata }) =>
      ['verifier', 'signing-key'].includes(metadata.labels?.[PART_LABEL] ?? ''),
    );
    for (const { name } of wanted) this.#queue.add(name);
    this.#queue.start();
  }

  /**
   * Fulfilled when each is there, or could not be made at the first try. Whatever else an install has is to come after that:
   * a leader that finds it takes those that are missing for lost.
   */
  async whenTried(): Promise<void> {
    await Promise.all([...this.#tries.values()].map(({ promise }) => promise));
  }

  /** Nothing is written any more after the promise is fulfilled. */
  async stop(): Promise<void> {
    this.#endListening?.();
    await this.#queue.stop();
  }

  async #reconcile(name: string): Promise<undefined> {
    const { api, sources, releaseNamespace: namespace, wanted, random } = this.#options;
    const secret = wanted.find((each) => each.name === name);
    if (secret === undefined || sources.releaseSecrets.get(objectKey({ namespace, name })) !== undefined)
      return undefined;
    const lost = this.#lostValue(secret);
    // Not by what the watch has told when the answer comes: what is made here may be gone again by then.
    const wasThere = this.#isOld || this.#options.lost.get(name) !== undefined;
    const value = lost ?? Buffer.from(random.bytes(SECRET_BYTES)).toString('base64url');
    try {
      const made = await api.create(SECRETS, {
        metadata: { name, namespace, labels: { [PART_LABEL]: secret.part } },
        type: 'Opaque',
        data: { [secret.key]: Buffer.from(value).toString('base64') },
      });
      if (wasThere && lost === undefined) this.#tellOfLoss(secret, made);
    } catch (error) {
      if (!(error instanceof KubernetesError && error.reason === 'AlreadyExists')) throw error;
      // Another leader's that the watch has not told yet, or somebody else's, which no token server reads.
      const present = await api.get(SECRETS, { namespace, name });
      // One that went meanwhile, and that nobody tells of: look again.
      if (present === undefined) throw error;
      if (present.metadata.labels?.[PART_LABEL] !== secret.part) {
        throw new Error(`the Secret ${name} has no label ${PART_LABEL}: ${secret.part}; add it, or remove the Secret`);
      }
    }
    return undefined;
  }

  #tellOfLoss({ name, part }: SingleSecret, made: KubernetesObject): void {
    const { log, record } = this.#options;
    const note = LOSSES[part];
    if (note === undefined) return;
    log.error({ secret: name }, `the Secret ${name} was gone: ${note}`);
    record({ regarding: made, type: 'Warning', reason: 'InstallSecretLost', action: 'Create', note });
  }

  /** What a Secret held before it was deleted; undefined when that is not known, or was of no use. */
  #lostValue({ name, key }: SingleSecret): string | undefined {
    const lost = this.#options.lost.get(name);
    const found = lost && readSecretValue(lost, key, true);
    return found?.outcome === 'found' && found.value.trim().length >= SECRET_BYTES ? found.value : undefined;
  }
}
