// The Secrets of which an install has one, as they last were before somebody deleted them. Every controller remembers,
// whoever leads: the next leader makes them again as they were.

import { CONTROLLER_SECRET, PEPPER_SECRET, WEBHOOK_SECRET } from '../../admission/references/secret-parts.ts';
import type { KubernetesObject } from '../../kubernetes/objects/resources.ts';
import type { SharedReflector } from '../../kubernetes/watch/shared-reflector.ts';

const NAMES = [PEPPER_SECRET, WEBHOOK_SECRET, CONTROLLER_SECRET].map(({ name }) => name);

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

  /** Undefined when it is there, or was never seen. */
  get(name: string): KubernetesObject | undefined {
    return this.#lost.get(name);
  }
}
