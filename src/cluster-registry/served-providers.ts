// The IdentityProviders of the release namespace, as the registry has them, and the generations that this process has
// validated. While the Secret of a provider is missing or unusable, sign-in through it is disabled, and no session ends.

import {
  admitProviders,
  type ProviderObservation,
  registryProviders,
} from '../admission/identity-providers/admit-providers.ts';
import { boundedSpec } from '../admission/kinds/spec-size.ts';
import { type KubernetesObject, objectKey } from '../kubernetes/objects/resources.ts';
import { sourceOf } from '../kubernetes/objects/source-object.ts';
import { withoutBallast } from '../kubernetes/watch/object-store.ts';
import type { ObjectView } from '../kubernetes/watch/shared-reflector.ts';
import type { IdentityProvider } from '../oauth/registry/identity-provider.ts';

/** What a token server has of one provider. */
export interface ServedProviderState {
  /** The `metadata.generation` that it has validated, accepted or not. */
  readonly generation: number;
}

export interface ServedProvidersOptions {
  readonly releaseNamespace: string;
  /** The IdentityProviders of the release namespace. */
  readonly providers: Pick<ObjectView, 'objects'>;
  /** The Secrets there of the type for identity providers, and no others. */
  readonly secrets: Pick<ObjectView, 'get'>;
}

/** The form in which an IdentityProvider is cached. */
export function keptProvider({ status: _, ...object }: KubernetesObject): KubernetesObject {
  const kept = withoutBallast(object as KubernetesObject);
  return { ...kept, spec: boundedSpec(kept) };
}

export class ServedProviders {
  readonly #options: ServedProvidersOptions;
  #isChanged = true;
  /** The providers of the registry as of the last {@link recompute}. */
  #computed: readonly IdentityProvider[] = [];
  #states: ReadonlyMap<string, ServedProviderState> = new Map();
  #served: ReadonlyMap<string, ServedProviderState> = new Map();

  constructor(options: ServedProvidersOptions) {
    this.#options = options;
  }

  /** Whether anything changed since the last {@link recompute}. */
  get isChanged(): boolean {
    return this.#isChanged;
  }

  /** To be called when a provider or a Secret changed. */
  changed(): void {
    this.#isChanged = true;
  }

  /** Validates all providers, if anything changed. */
  recompute(): void {
    if (!this.#isChanged) return;
    this.#isChanged = false;
    const { releaseNamespace, providers, secrets } = this.#options;
    const objects = [...providers.objects()].map(sourceOf);
    const verdicts = admitProviders(objects, {
      unknownFields: 'ignore',
      releaseNamespace,
      secret: (namespace, name) => secrets.get(objectKey({ namespace, name })),
      observed: () => OBSERVED,
    });
    this.#computed = registryProviders(verdicts, this.#computed);
    this.#states = new Map(objects.map(({ uid, generation }) => [uid, { generation }]));
  }

  /**
   * Serves the result of the last {@link recompute}.
   * @returns the providers of the registry: the same list while none of them changes
   */
  publish(): readonly IdentityProvider[] {
    this.#served = this.#states;
    return this.#computed;
  }

  /** By uid, as of the last {@link publish}. */
  get served(): ReadonlyMap<string, ServedProviderState> {
    return this.#served;
  }
}

/** A server reports no conditions. */
const OBSERVED: ProviderObservation = {
  reachable: { status: 'Unknown', reason: 'NotObserved', message: '' },
  programmed: { status: 'Unknown', reason: 'Pending', message: '' },
};
