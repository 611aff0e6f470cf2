// The ProtectedResources of one install with their verdicts. A change validates one resource again and ranks all. The
// controller and each token server keep one set; the validation of a folder makes a new one.

import { withoutFinalSlash } from '../../oauth/registry/resources.ts';
import type { Programmed } from '../kinds/conditions.ts';
import { classOf, fieldsOf, type SourceObject, type UnknownFields } from '../kinds/manifest.ts';
import type { OwnerOf } from '../policies/policy-violations.ts';
import {
  type AcceptedResource,
  acceptedResource,
  findResource,
  type ResourceContext,
  type ResourceFindings,
  type ResourceReading,
  type ResourceVerdict,
  readResource,
  resourceVerdict,
  type WithheldResource,
  withheldResource,
} from './admit-resource.ts';
import { faultsAmongAll, faultsOf } from './rank-resources.ts';
import type { ResourceFault } from './resource-rules.ts';

export interface AdmittedResourcesOptions extends Omit<ResourceContext, 'policies'> {
  readonly className: string;
  readonly unknownFields: UnknownFields;
  /** The present policies of the class. */
  readonly policies: () => ResourceContext['policies'];
}

/** The keys of the resources that changed since the previous {@link AdmittedResources.recompute}. */
export interface ResourceChanges {
  /** Resources whose verdict may differ. */
  readonly verdicts: readonly string[];
  /** Resources that became or ceased to be accepted or withheld, or are so with another `spec`. */
  readonly granting: readonly string[];
}

const NO_CHANGES: ResourceChanges = { verdicts: [], granting: [] };
const NOT_OBSERVED: Programmed = { status: 'Unknown', reason: 'Pending', message: '' };

export class AdmittedResources<Source extends SourceObject> {
  readonly #options: AdmittedResourcesOptions;
  readonly #objects = new Map<string, { readonly object: Source; readonly reading: ResourceReading }>();
  readonly #findings = new Map<string, ResourceFindings<Source>>();
  /** Whether anything changed since the last {@link recompute}. */
  #isChanged = false;
  #ranked: ReadonlyMap<ResourceFindings, readonly ResourceFault[]> = new Map();
  /** The findings as of the last {@link recompute}, by key. */
  #computed: ReadonlyMap<string, ResourceFindings<Source>> = new Map();
  #accepted: ReadonlyMap<string, AcceptedResource> = new Map();
  #withheld: ReadonlyMap<string, WithheldResource> = new Map();
  /** Namespaces, by identifier without a final slash. */
  #owners: ReadonlyMap<string, string> = new Map();

  constructor(options: AdmittedResourcesOptions) {
    this.#options = options;
  }

  /** Stores an object; one of another class, or one that is being deleted, is removed. */
  put(object: Source): void {
    const key = keyOf(object);
    const { metadata } = fieldsOf(object.manifest);
    const isBeingDeleted = (fieldsOf(metadata).deletionTimestamp ?? undefined) !== undefined;
    this.delete(key);
    const { className, unknownFields } = this.#options;
    if (isBeingDeleted || classOf(object.manifest) !== className) return;
    this.#isChanged = true;
    this.#objects.set(key, { object, reading: readResource(object.manifest, unknownFields) });
  }

  /** @param key `<namespace>/<name>` */
  delete(key: string): void {
    if (this.#objects.delete(key)) this.#isChanged = true;
    this.#findings.delete(key);
  }

  /** To be called when policies, or labels of namespaces, changed. @param namespace undefined: any */
  revalidate(namespace?: string): void {
    this.#isChanged = true;
    if (namespace === undefined) this.#findings.clear();
    else for (const key of this.#findings.keys()) if (key.startsWith(`${namespace}/`)) this.#findings.delete(key);
  }

  /** Validates the changed resources, and ranks all. */
  recompute(): ResourceChanges {
    if (!this.#isChanged) return NO_CHANGES;
    this.#isChanged = false;
    const context = { ...this.#options, policies: this.#options.policies() };
    for (const [key, { object, reading }] of this.#objects) {
      if (!this.#findings.has(key)) this.#findings.set(key, findResource(object, reading, context));
    }
    const rankedBefore = this.#ranked;
    this.#ranked = faultsAmongAll([...this.#findings.values()]);
    const verdicts = [...this.#findings].flatMap(([key, findings]) => {
      const isSame = this.#computed.get(key) === findings;
      return isSame && isSameFault(faultsOf(rankedBefore, findings), faultsOf(this.#ranked, findings)) ? [] : [key];
    });
    this.#computed = new Map(this.#findings);
    const [acceptedBefore, withheldBefore] = [this.#accepted, this.#withheld];
    this.#accepted = this.#resourcesBy(acceptedResource);
    this.#withheld = this.#resourcesBy(withheldResource);
    const owners = [...this.#accepted.values(), ...this.#withheld.values()];
    this.#owners = new Map(owners.map(({ identifier, namespace }) => [withoutFinalSlash(identifier), namespace]));
    const granting = new Set([
      ...changedKeys(acceptedBefore, this.#accepted),
      ...changedKeys(withheldBefore, this.#withheld),
    ]);
    return { verdicts, granting: [...granting] };
  }

  #resourcesBy<Result>(
    resourceOf: (findings: ResourceFindings, amongAll: readonly ResourceFault[]) => Result | undefined,
  ): ReadonlyMap<string, Result> {
    return new Map(
      [...this.#findings].flatMap(([key, findings]) => {
        const resource = resourceOf(findings, faultsOf(this.#ranked, findings));
        return resource === undefined ? [] : [[key, resource] as const];
      }),
    );
  }

  /** The accepted resources as of the last {@link recompute}, by `<namespace>/<name>`. */
  get accepted(): ReadonlyMap<string, AcceptedResource> {
    return this.#accepted;
  }

  /** The withheld resources as of the last {@link recompute}, by `<namespace>/<name>`: none has the identifier of an accepted one. */
  get withheld(): ReadonlyMap<string, WithheldResource> {
    return this.#withheld;
  }

  /** The namespace of the accepted or withheld resource that has an identifier, as of the last {@link recompute}. */
  readonly ownerOf: OwnerOf = (identifier) => this.#owners.get(withoutFinalSlash(identifier));

  /** Of the resources of this install. */
  keys(): Iterable<string> {
    return this.#objects.keys();
  }

  /** The object of a resource; undefined when it is none of this install. */
  get(key: string): Source | undefined {
    return this.#objects.get(key)?.object;
  }

  /** The verdict as of the last {@link recompute}; undefined when it is no resource of this install. */
  verdict(key: string, programmed: Programmed = NOT_OBSERVED): ResourceVerdict<Source> | undefined {
    const findings = this.#findings.get(key);
    return findings && resourceVerdict(findings, faultsOf(this.#ranked, findings), programmed);
  }
}

type BySpec = ReadonlyMap<string, WithheldResource>;

function changedKeys(before: BySpec, now: BySpec): readonly string[] {
  const keys = new Set([...before.keys(), ...now.keys()]);
  return [...keys].filter((key) => before.get(key)?.spec !== now.get(key)?.spec);
}

function isSameFault(before: readonly ResourceFault[], now: readonly ResourceFault[]): boolean {
  return before === now || JSON.stringify(before) === JSON.stringify(now);
}

function keyOf({ namespace, name }: SourceObject): string {
  return [namespace, name].join('/');
}
