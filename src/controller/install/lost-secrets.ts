// The last observed state of deleted install Secrets (install-secrets.ts). Every controller process records it, leader
// or not, so that the next leader can create the Secrets again with the same values.

import {
  CONTROLLER_SECRET,
  PEPPER_SECRET,
  REDIS_SECRET,
  WEBHOOK_SECRET,
} from '../../admission/references/secret-parts.ts';
import type { KubernetesObject } from '../../kubernetes/objects/resources.ts';
import type { SharedReflector } from '../../kubernetes/watch/shared-reflector.ts';

const NAMES = [PEPPER_SECRET, WEBHOOK_SECRET, CONTROLLER_SECRET, REDIS_SECRET].map(({ name }) => name);

export class LostSecrets {
  readonly #lost = new Map<string, KubernetesObject>();

  /** @param releaseSecrets those Secrets of the release namespace that are parts of grantry; followed from now on */
  constructor(releaseSecrets: Pick<SharedReflector, 'listen'>) {
    releaseSecrets.listen(({ type, object }) => {
      const { name } = object.metadata;
      if (!NAMES.includes(name)) return;
      if (type === 'delete') this.#lost.set(name, object);
      else this.#lost.delete(name);
    });
  }

  /** The deleted Secret; undefined when the Secret exists, or was never observed. */
  get(name: string): KubernetesObject | undefined {
    return this.#lost.get(name);
  }
}
