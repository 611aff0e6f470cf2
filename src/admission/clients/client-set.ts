// The OAuthClients of one install with their verdicts: of each by itself (admit-client.ts), and by the rules among all of
// them (client-uniqueness.ts). check, dev, the controller and the token servers keep one each. A change costs what it
// affects, and the caller decides when each affected client is validated.

import { GRANT_TYPES } from '../../oauth/grants/index.ts';
import type { Fault, Programmed } from '../kinds/conditions.ts';
import { classOf, fieldsOf, readManifest, type SourceObject } from '../kinds/manifest.ts';
import { OAUTH_CLIENT } from '../kinds/oauth-client.ts';
import { matchesSelector } from '../policies/label-selector.ts';
import type { Policy } from '../policies/policy-violations.ts';
import type { References } from '../references/references.ts';
import {
  type AdmissionContext,
  type ClientFindings,
  type ClientVerdict,
  clientVerdict,
  type ReadManifest,
  validateManifest,
} from './admit-client.ts';
import { Candidate, ClientUniqueness, claimOf } from './client-uniqueness.ts';

export interface ClientSetOptions<Source extends SourceObject>
  extends Pick<
    AdmissionContext,
    'issuer' | 'unknownFields' | 'reservedNamespace' | 'defaultPolicy' | 'ownerOf' | 'supportedAuthMethods'
  > {
  /** The present policies of the class. */
  readonly policies: () => readonly Policy[];
  readonly namespaceLabels: References['namespaceLabels'];
  readonly factsOf: (uid: string) => ClientFacts;
  /** The parsed manifest, where the caller has it already. */
  readonly read?: (object: Source) => ReadManifest;
  /** Whether the caller guarantees that no two clients have the same uid. */
  readonly uidsDiffer?: boolean;
}

/** What a verdict depends on beside the manifest: the objects that the client refers to, and what is stored of it. */
export interface ClientFacts extends Omit<References, 'namespaceLabels'> {
  readonly programmed: Programmed;
  /** Faults of its credentials that no manifest causes. */
  readonly faults?: readonly Fault[];
}

/** Whether an OAuthClient is one of this class and not being deleted: no other belongs in the set. */
export function isServed({ manifest }: Pick<SourceObject, 'manifest'>, className: string): boolean {
  const { metadata } = fieldsOf(manifest);
  const isBeingDeleted = (fieldsOf(metadata).deletionTimestamp ?? undefined) !== undefined;
  return !isBeingDeleted && classOf(manifest) === className;
}

class Member<Source> extends Candidate {
  object: Source;

  constructor(object: Source) {
    super();
    this.object = object;
  }
}

const SUPPORTED_GRANT_TYPES = [...GRANT_TYPES.keys()];

export class ClientSet<Source extends SourceObject> {
  readonly #options: ClientSetOptions<Source>;
  /** By `<namespace>/<name>`. */
  readonly #members = new Map<string, Member<Source>>();
  readonly #claims: ClientUniqueness<Member<Source>>;
  /** As of the last {@link revalidate}. */
  #policies: readonly Policy[] | undefined;
  /** By namespace, only those that select it. */
  readonly #selecting = new Map<string, readonly Policy[]>();

  constructor(options: ClientSetOptions<Source>) {
    this.#options = options;
    this.#claims = new ClientUniqueness(options);
  }

  /** Stores an object; {@link validate} renews its claims. */
  put(object: Source): void {
    const key = keyOf(object);
    const member = this.#members.get(key);
    if (member === undefined) this.#members.set(key, new Member(object));
    else member.object = object;
  }

  /** @param key `<namespace>/<name>` */
  delete(key: string): void {
    const member = this.#members.get(key);
    if (member === undefined) return;
    this.#members.delete(key);
    this.#claims.delete(member);
  }

  /** The object that is stored; undefined where there is none. */
  get(key: string): Source | undefined {
    return this.#members.get(key)?.object;
  }

  keys(): Iterable<string> {
    return this.#members.keys();
  }

  /**
   * To be called when the policies, or the labels of a namespace, changed.
   * @param namespace undefined: the policies
   * @returns the clients to validate again
   */
  revalidate(namespace?: string): readonly Source[] {
    if (namespace !== undefined) {
      this.#selecting.delete(namespace);
      return this.#objectsIn((each) => each === namespace);
    }
    const before = this.#policies ?? [];
    this.#policies = this.#options.policies();
    const changed = differing(before, this.#policies);
    if (changed.length === 0) return [];
    this.#selecting.clear();
    return this.#objectsIn((each) => {
      const labels = this.#options.namespaceLabels(each);
      // The clients of a namespace that is not observed yet are validated once it is.
      return labels !== undefined && changed.some((policy) => matchesSelector(policy.namespaceSelector, labels));
    });
  }

  /**
   * Validates one client, and renews its claims for {@link recompute}.
   * @returns the verdict as if it were alone
   * @throws Error where there is no such client
   */
  validate(key: string): ClientVerdict<Source> {
    const member = this.#memberOf(key);
    const findings = this.#findings(member.object, this.#options.factsOf(member.object.uid));
    this.#claims.put(member, claimOf(findings));
    return clientVerdict(findings);
  }

  /** Applies the rules among all clients. @returns the clients whose faults by them changed */
  recompute(): readonly Source[] {
    return this.#claims.recompute().map(({ object }) => object);
  }

  /** The faults of a client by the rules among all, as of the last {@link recompute}. */
  faultsAmongAll(key: string): readonly Fault[] {
    const member = this.#members.get(key);
    return member === undefined ? [] : this.#claims.faultsOf(member);
  }

  /**
   * The verdict on a client, with the rules among all as of the last {@link recompute}.
   * @param facts in place of those that the set looks up
   * @throws Error where there is no such client
   */
  verdict(key: string, facts: Partial<ClientFacts> = {}): ClientVerdict<Source> {
    const member = this.#memberOf(key);
    const known = { ...this.#options.factsOf(member.object.uid), ...facts };
    return clientVerdict(this.#findings(member.object, known), [
      ...this.#claims.faultsOf(member),
      ...(known.faults ?? []),
    ]);
  }

  /** Validates all clients. @returns the verdicts, in the order of the first {@link put} of each */
  validateAll(): readonly ClientVerdict<Source>[] {
    for (const key of this.keys()) this.validate(key);
    this.recompute();
    return [...this.keys()].map((key) => this.verdict(key));
  }

  #findings(object: Source, { programmed, ...references }: ClientFacts): ClientFindings<Source> {
    const { namespaceLabels, unknownFields, read } = this.#options;
    const context: AdmissionContext = {
      ...this.#options,
      policies: this.#policiesFor(object.namespace),
      references: { ...references, namespaceLabels },
      supportedGrantTypes: SUPPORTED_GRANT_TYPES,
      programmed: () => programmed,
    };
    const manifest = read?.(object) ?? readManifest(OAUTH_CLIENT[unknownFields], object.manifest);
    return validateManifest(object, manifest, context);
  }

  #memberOf(key: string): Member<Source> {
    const member = this.#members.get(key);
    if (member === undefined) throw new Error(`${key} is no client of this install`);
    return member;
  }

  #policiesFor(namespace: string): readonly Policy[] {
    const known = this.#selecting.get(namespace);
    if (known !== undefined) return known;
    const labels = this.#options.namespaceLabels(namespace);
    // Until the namespace is observed no policy selects it.
    if (labels === undefined) return [];
    this.#policies ??= this.#options.policies();
    const selecting = this.#policies.filter(({ namespaceSelector }) => matchesSelector(namespaceSelector, labels));
    this.#selecting.set(namespace, selecting);
    return selecting;
  }

  #objectsIn(isAffected: (namespace: string) => boolean): readonly Source[] {
    const answers = new Map<string, boolean>();
    const objects: Source[] = [];
    for (const { object } of this.#members.values()) {
      const answer = answers.get(object.namespace) ?? isAffected(object.namespace);
      answers.set(object.namespace, answer);
      if (answer) objects.push(object);
    }
    return objects;
  }
}

/** The policies that only one of the lists has. */
function differing(before: readonly Policy[], now: readonly Policy[]): readonly Policy[] {
  const textsOf = (policies: readonly Policy[]) => new Set(policies.map((policy) => JSON.stringify(policy)));
  const [textsBefore, textsNow] = [textsOf(before), textsOf(now)];
  return [
    ...before.filter((policy) => !textsNow.has(JSON.stringify(policy))),
    ...now.filter((policy) => !textsBefore.has(JSON.stringify(policy))),
  ];
}

function keyOf({ namespace, name }: SourceObject): string {
  // `join` makes one flat string; a template would keep both parts in memory.
  return [namespace, name].join('/');
}
