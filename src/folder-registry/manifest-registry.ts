// Builds the registry that requests read from a folder of manifests: validates every object, generates and writes the
// secrets, builds a new registry and swaps one reference at the end. Nothing is patched, so each request sees a
// consistent snapshot.

import { registryProviders } from '../admission/identity-providers/admit-providers.ts';
import type { DefaultPolicy } from '../admission/kinds/client-policy.ts';
import { registryResource, registryWithheld, selectBy } from '../admission/resources/registry-resource.ts';
import type { LocalKeys, ReconciledKeys } from '../local-state/local-keys.ts';
import type { LocalSecrets, ReconciledSecrets, SecretVerdict } from '../local-state/local-secrets.ts';
import { StateError } from '../local-state/state-error.ts';
import type { ManifestSet } from '../manifests/manifest-folder.ts';
import type { ManifestFault } from '../manifests/place.ts';
import type { Clock } from '../oauth/ports/ports.ts';
import { KeyRing } from '../oauth/registry/keys.ts';
import { Registry, type RegistryRef } from '../oauth/registry/registry.ts';
import { Resources } from '../oauth/registry/resources.ts';
import { type ManifestVerdicts, readyOf, sortedFaults, validateManifests } from './manifest-verdicts.ts';

export interface ManifestRegistryOptions {
  readonly secrets: LocalSecrets;
  readonly keys: LocalKeys;
  readonly issuer: string;
  readonly clock: Clock;
  /** The wire names of the authentication methods that clients may have. */
  readonly supportedAuthMethods: readonly string[];
  readonly releaseNamespace: string;
  readonly defaultPolicy: DefaultPolicy;
}

/** What a rebuild serves. */
export interface Rebuilt extends ManifestVerdicts {
  /** A line for each secret and ring that was rotated. */
  readonly rotations: readonly string[];
  /** When the next step of a rotation is due, in epoch milliseconds; undefined: only a change makes it due. */
  readonly dueAt: number | undefined;
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
   * Validates the folder and serves the result. One call at a time.
   * @throws StateError from the first call only, when a key or a record cannot be used; later calls keep the current
   * keys and secrets
   */
  async rebuild(set: ManifestSet): Promise<Rebuilt> {
    const validated = await this.#withSecrets(set);
    const keys = await this.#reconciled<ReconciledKeys>(() => this.#options.keys.reconcile(validated.verdicts.keys), {
      ring: this.current.keys,
      rotations: [],
      dueAt: undefined,
    });
    const unwritten = await this.#writeSecrets(validated.verdicts.clients);
    const { clients, resources, providers, namespaces, faults } = validated.verdicts;
    const refused = clients.filter(({ client }) => client === undefined);
    const refusals = new Map(refused.map((verdict) => [verdict.clientId, readyOf(verdict).reason]));
    const select = selectBy((namespace) => namespaces.get(namespace));
    this.#current = new Registry(
      clients.flatMap(({ client }) => client ?? []),
      keys.done.ring,
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
    const due = [validated.secrets.dueAt, keys.done.dueAt].filter((time) => time !== undefined);
    return {
      ...validated.verdicts,
      faults: sortedFaults([...faults, ...validated.faults, ...keys.faults, ...unwritten]),
      rotations: [...validated.secrets.rotations, ...keys.done.rotations],
      dueAt: due.length === 0 ? undefined : Math.min(...due),
    };
  }

  /** The verdicts after every step of a secret that is due, and the faults of those whose secret failed. */
  async #withSecrets(set: ManifestSet) {
    const { secrets, issuer, clock, supportedAuthMethods, releaseNamespace, defaultPolicy } = this.#options;
    const validate = () =>
      validateManifests(set, {
        issuer,
        supportedAuthMethods,
        unknownFields: 'ignore',
        now: clock.now(),
        classes: 'default',
        releaseNamespace,
        reservedNamespace: undefined,
        defaultPolicy,
        references: { verifiersOf: (uid) => secrets.verifiersOf(uid), assumeMissing: false },
        programmed: { status: 'True', reason: 'Programmed', message: 'Served by this process.' },
        reachable: { status: 'Unknown', reason: 'NotObserved', message: 'Not reported by grantry dev.' },
        userFiles: 'refuse',
      });
    const verdicts = await validate();
    const kept: ReconciledSecrets = { isChanged: false, rotations: [], faults: new Map(), dueAt: undefined };
    const { done, faults } = await this.#reconciled(() => secrets.reconcile(verdicts.clients), kept);
    return {
      verdicts: done.isChanged ? await validate() : verdicts,
      secrets: done,
      faults: [...faults, ...[...done.faults].map(([verdict, error]) => secretFault(verdict, error))],
    };
  }

  async #writeSecrets(clients: readonly SecretVerdict[]): Promise<readonly ManifestFault[]> {
    const served = clients.filter(({ client }) => client !== undefined);
    return await faultsOfEach(served, (verdict) => this.#options.secrets.writeManifest(verdict));
  }

  // The first call requires every key and record. Later, a damaged one must not remove the good ones.
  async #reconciled<Done>(reconcile: () => Promise<Done>, kept: Done) {
    try {
      return { done: await reconcile(), faults: [] };
    } catch (error) {
      if (this.#current === undefined || !(error instanceof StateError)) throw error;
      const place = { file: error.file, document: undefined, line: undefined, field: undefined };
      const message = `It ${error.problem}. Keys and secrets stay as they were.`;
      return { done: kept, faults: [{ place, reason: 'InvalidKeyMaterial', message }] };
    }
  }
}

const NOTHING = new Registry([], new KeyRing([]));

/** Runs an action for each client; a {@link StateError} becomes a fault of that client only. */
async function faultsOfEach(
  clients: readonly SecretVerdict[],
  action: (verdict: SecretVerdict) => Promise<void>,
): Promise<readonly ManifestFault[]> {
  const faults: ManifestFault[] = [];
  for (const verdict of clients) {
    try {
      await action(verdict);
    } catch (error) {
      if (!(error instanceof StateError)) throw error;
      faults.push(secretFault(verdict, error));
    }
  }
  return faults;
}

function secretFault({ object }: SecretVerdict, error: StateError): ManifestFault {
  return { place: object.place, reason: 'SecretWriteForbidden', message: `${error.message}.` };
}
