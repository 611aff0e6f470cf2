// The OAuthClients of this install with the controller's verdicts: by the same judge and the same uniqueness rules as
// in the token servers (admitted-clients.ts), plus the Secrets that only the controller may read.

import {
  type AdmissionContext,
  type ClientVerdict,
  clientVerdict,
  findClient,
} from '../../admission/clients/admit-client.ts';
import { isServed } from '../../admission/clients/client-set.ts';
import { ClientUniqueness, Contender, claimOf } from '../../admission/clients/client-uniqueness.ts';
import type { DefaultPolicy } from '../../admission/kinds/client-policy.ts';
import type { Fault, Programmed } from '../../admission/kinds/conditions.ts';
import { admitPolicies } from '../../admission/policies/admit-policies.ts';
import type { OwnerOf, Policy } from '../../admission/policies/policy-violations.ts';
import type { References } from '../../admission/references/references.ts';
import { type KubernetesObject, objectKey } from '../../kubernetes/objects/resources.ts';
import { sourceOf } from '../../kubernetes/objects/source-object.ts';
import { labelsOf } from '../../kubernetes/watch/namespace-labels.ts';
import type { ObjectView } from '../../kubernetes/watch/shared-reflector.ts';
import { GRANT_TYPES } from '../../oauth/grants/index.ts';

export interface JudgedClientsOptions {
  readonly issuer: string;
  readonly className: string;
  readonly releaseNamespace: string;
  readonly defaultPolicy: DefaultPolicy;
  /** The wire names of the client authentication methods that this install has. */
  readonly supportedAuthMethods: readonly string[];
  readonly ownerOf: OwnerOf;
  readonly policies: ObjectView;
  readonly namespaces: ObjectView;
  /** Metadata of the ServiceAccounts in the namespaces of clients. */
  readonly serviceAccounts: Pick<ObjectView, 'get'>;
}

/** The facts about one client alone; the rules among all clients are in client-uniqueness.ts. */
export interface OwnFacts {
  readonly secret: References['secret'];
  /** Default: it was not read. */
  readonly configMap?: References['configMap'] | undefined;
  readonly verifiers: readonly Uint8Array[];
  /** The keys that are stored. */
  readonly jwks?: ReturnType<References['jwksOf']>;
  readonly programmed: Programmed;
  /** Faults of its credentials that no manifest causes. */
  readonly faults?: readonly Fault[];
}

/** For findings of which only the claims are used. */
const NO_FACTS: OwnFacts = {
  secret: () => 'withheld',
  verifiers: [],
  programmed: { status: 'Unknown', reason: 'Pending', message: '' },
};

const WITHHELD = () => 'withheld' as const;

class JudgedClient extends Contender {
  readonly key: string;
  object: KubernetesObject;

  constructor(key: string, object: KubernetesObject) {
    super();
    this.key = key;
    this.object = object;
  }
}

export class JudgedClients {
  readonly #options: JudgedClientsOptions;
  readonly #clients = new Map<string, JudgedClient>();
  readonly #claims = new ClientUniqueness<JudgedClient>();
  #policies: readonly Policy[] | undefined;

  constructor(options: JudgedClientsOptions) {
    this.#options = options;
  }

  /** An account that is being deleted counts as deleted: its tokens are not accepted any more. */
  readonly serviceAccountUid: References['serviceAccountUid'] = (namespace, name) => {
    const { metadata } = this.#options.serviceAccounts.get(`${namespace}/${name}`) ?? {};
    return metadata?.deletionTimestamp === undefined ? metadata?.uid : undefined;
  };

  /** Adds or updates a client and its claims; also to be called when policies or namespaces changed. */
  put(object: KubernetesObject): void {
    const key = objectKey(object.metadata);
    if (!isServed({ manifest: object }, this.#options.className)) {
      this.delete(key);
      return;
    }
    const client = this.#clients.get(key) ?? new JudgedClient(key, object);
    client.object = object;
    this.#clients.set(key, client);
    this.#claims.put(client, claimOf(this.#findings(object, NO_FACTS)));
  }

  delete(key: string): void {
    const client = this.#clients.get(key);
    if (client === undefined) return;
    this.#clients.delete(key);
    this.#claims.delete(client);
  }

  /** To be called when a policy changed. */
  policiesChanged(): void {
    this.#policies = undefined;
  }

  /** Ranks the claims of all clients. @returns the keys of the clients whose uniqueness faults changed */
  settle(): readonly string[] {
    return this.#claims.settle().map(({ key }) => key);
  }

  /** The object of a client; undefined when it is not a client of this install. */
  get(key: string): KubernetesObject | undefined {
    return this.#clients.get(key)?.object;
  }

  keys(): Iterable<string> {
    return this.#clients.keys();
  }

  /** The verdict on a client of this install. @throws Error for any other key */
  verdict(key: string, facts: OwnFacts): ClientVerdict {
    const client = this.#clients.get(key);
    if (client === undefined) throw new Error(`${key} is no client of this install`);
    const uniquenessFaults = this.#claims.faultsOf(client);
    return clientVerdict(this.#findings(client.object, facts), [...uniquenessFaults, ...(facts.faults ?? [])]);
  }

  #findings(object: KubernetesObject, { secret, configMap = WITHHELD, verifiers, jwks, programmed }: OwnFacts) {
    const { issuer, releaseNamespace, defaultPolicy, supportedAuthMethods, ownerOf } = this.#options;
    const context: AdmissionContext = {
      issuer,
      unknownFields: 'ignore',
      reservedNamespace: releaseNamespace,
      policies: this.#currentPolicies(),
      defaultPolicy,
      ownerOf,
      references: {
        secret,
        configMap,
        serviceAccountUid: this.serviceAccountUid,
        namespaceLabels: (namespace) => labelsOf(this.#options.namespaces, namespace),
        verifiersOf: () => verifiers,
        jwksOf: () => jwks,
      },
      supportedGrantTypes: [...GRANT_TYPES.keys()],
      supportedAuthMethods,
      programmed: () => programmed,
    };
    return findClient(sourceOf(object), context);
  }

  #currentPolicies(): readonly Policy[] {
    const { className, policies } = this.#options;
    this.#policies ??= admitPolicies({
      className,
      unknownFields: 'ignore',
      policies: [...policies.objects()].map(sourceOf),
    }).map(({ policy }) => policy);
    return this.#policies;
  }
}
