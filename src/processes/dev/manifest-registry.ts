// Builds the registry that requests read from a folder of manifests: judges every object, generates and writes the
// secrets, builds a new registry and swaps one reference at the end. Nothing is patched, so each request sees a
// consistent snapshot.

import type { ClientVerdict } from '../../admission/clients/admit-client.ts';
import { registryProviders } from '../../admission/identity-providers/admit-providers.ts';
import type { DefaultPolicy } from '../../admission/kinds/client-policy.ts';
import { registryResource, registryWithheld, selectBy } from '../../admission/resources/registry-resource.ts';
import type { ManifestSet } from '../../manifests/manifest-folder.ts';
import type { ManifestObject } from '../../manifests/objects.ts';
import type { ManifestFault } from '../../manifests/place.ts';
import { KeyRing } from '../../oauth/registry/keys.ts';
import { Registry, type RegistryRef } from '../../oauth/registry/registry.ts';
import { Resources } from '../../oauth/registry/resources.ts';
import { judgeManifests, type ManifestVerdicts, readyOf, sortedFaults } from '../check/manifest-verdicts.ts';
import { systemClock } from '../lifecycle/machine.ts';
import type { DevKeys } from './dev-keys.ts';
import type { DevSecrets } from './dev-secrets.ts';
import { DevStateError } from './dev-state-error.ts';

export interface ManifestRegistryOptions {
  readonly secrets: DevSecrets;
  readonly keys: DevKeys;
  readonly issuer: string;
  /** The wire names of the authentication methods that clients may have. */
  readonly supportedAuthMethods: readonly string[];
  readonly releaseNamespace: string;
  readonly defaultPolicy: DefaultPolicy;
}

/** The registry of `grantry dev`. */
export class ManifestRegistry implements RegistryRef {
  readonly #options: ManifestRegistryOptions;
  #current: Registry | undefined;
  #refusedClients = 0;

  constructor(options: ManifestRegistryOptions) {
    this.#options = options;
  }

  get current(): Registry {
    return this.#current ?? NOTHING;
  }

  /** The number of clients that the last rebuild refused. */
  get refusedClients(): number {
    return this.#refusedClients;
  }

  /**
   * Judges the folder and serves the result. One call at a time.
   * @throws DevStateError from the first call only, when a key file cannot be used; later calls keep the current keys
   */
  async rebuild(set: ManifestSet): Promise<ManifestVerdicts> {
    const judged = await this.#withSecrets(set);
    const keys = await this.#ringOf(judged.verdicts);
    const unwritten = await this.#writeSecrets(judged.verdicts.clients);
    const { clients, resources, providers, namespaces, faults } = judged.verdicts;
    const refused = clients.filter(({ client }) => client === undefined);
    const refusals = new Map(refused.map((verdict) => [verdict.clientId, readyOf(verdict).reason]));
    const select = selectBy((namespace) => namespaces.get(namespace));
    this.#current = new Registry(
      clients.flatMap(({ client }) => client ?? []),
      keys.ring,
      {
        resources: new Resources(
          resources.flatMap(({ resource }) => (resource ? [registryResource(resource, select)] : [])),
          resources.flatMap(({ withheld }) => (withheld ? [registryWithheld(withheld)] : [])),
        ),
        providers: registryProviders(providers, this.current.providers),
        refused: { reasonOf: (clientId) => refusals.get(clientId) },
      },
    );
    this.#refusedClients = refused.length;
    return { ...judged.verdicts, faults: sortedFaults([...faults, ...judged.faults, ...keys.faults, ...unwritten]) };
  }

  /** The verdicts after every client that needs a secret has one, and the faults of those whose secret failed. */
  async #withSecrets(set: ManifestSet) {
    const { secrets, issuer, supportedAuthMethods, releaseNamespace, defaultPolicy } = this.#options;
    const judge = () =>
      judgeManifests(set, {
        issuer,
        supportedAuthMethods,
        unknownFields: 'ignore',
        now: systemClock.now(),
        classes: 'default',
        releaseNamespace,
        reservedNamespace: undefined,
        defaultPolicy,
        references: { verifiersOf: (uid) => secrets.verifiersOf(uid), assumeMissing: false },
        programmed: { status: 'True', reason: 'Programmed', message: 'Served by this process.' },
        reachable: { status: 'Unknown', reason: 'NotObserved', message: 'Not reported by grantry dev.' },
        userFiles: 'refuse',
      });
    const verdicts = await judge();
    const wanting = verdicts.clients.filter(({ wantsSecret }) => wantsSecret);
    const faults = await faultsOfEach(wanting, (verdict) => secrets.provide(verdict));
    return { verdicts: wanting.length > faults.length ? await judge() : verdicts, faults };
  }

  async #writeSecrets(clients: readonly ClientVerdict<ManifestObject>[]): Promise<readonly ManifestFault[]> {
    const served = clients.filter(({ client }) => client !== undefined);
    return await faultsOfEach(served, (verdict) => this.#options.secrets.writeManifest(verdict));
  }

  // The first ring requires every key. Later, a damaged key must not remove the good ones.
  async #ringOf({ keys }: ManifestVerdicts): Promise<{ ring: KeyRing; faults: readonly ManifestFault[] }> {
    try {
      return { ring: await this.#options.keys.ringOf(keys), faults: [] };
    } catch (error) {
      if (this.#current === undefined || !(error instanceof DevStateError)) throw error;
      const place = { file: error.file, document: undefined, line: undefined, field: undefined };
      const message = `It ${error.problem}. The keys stay as they were.`;
      return { ring: this.#current.keys, faults: [{ place, reason: 'InvalidKeyMaterial', message }] };
    }
  }
}

const NOTHING = new Registry([], new KeyRing([]));

/** Runs an action for each client; a {@link DevStateError} becomes a fault of that client only. */
async function faultsOfEach(
  clients: readonly ClientVerdict<ManifestObject>[],
  action: (verdict: ClientVerdict<ManifestObject>) => Promise<void>,
): Promise<readonly ManifestFault[]> {
  const faults: ManifestFault[] = [];
  for (const verdict of clients) {
    try {
      await action(verdict);
    } catch (error) {
      if (!(error instanceof DevStateError)) throw error;
      faults.push({ place: verdict.object.place, reason: 'SecretWriteForbidden', message: `${error.message}.` });
    }
  }
  return faults;
}
