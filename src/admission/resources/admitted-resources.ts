// The ProtectedResources of one install with their verdicts. A change is judged alone; the ranking among all is renewed
// with it. The controller and the token servers keep one each, and a folder is judged by a new one.

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
} from './admit-resource.ts';
import { faultsAmongAll, faultsOf } from './rank-resources.ts';
import type { ResourceFault } from './resource-rules.ts';

export interface AdmittedResourcesOptions extends Omit<ResourceContext, 'policies'> {
  readonly className: string;
  readonly unknownFields: UnknownFields;
  /** The present policies of the class. */
  readonly policies: () => ResourceContext['policies'];
}

const NOT_OBSERVED: Programmed = { status: 'Unknown', reason: 'Pending', message: '' };

export class AdmittedResources<Source extends SourceObject> {
  readonly #options: AdmittedResourcesOptions;
  readonly #objects = new Map<string, { readonly object: Source; readonly reading: ResourceReading }>();
  readonly #findings = new Map<string, ResourceFindings<Source>>();
  /** Whether anything changed since the last {@link settle}. */
  #isChanged = false;
  #ranked: ReadonlyMap<ResourceFindings, readonly ResourceFault[]> = new Map();
  #accepted: ReadonlyMap<string, AcceptedResource> = new Map();
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
  rejudge(namespace?: string): void {
    this.#isChanged = true;
    if (namespace === undefined) this.#findings.clear();
    else for (const key of this.#findings.keys()) if (key.startsWith(`${namespace}/`)) this.#findings.delete(key);
  }

  /** Judges what changed, and ranks all. @returns the keys of resources that are accepted now and were not, or reverse */
  settle(): readonly string[] {
    if (!this.#isChanged) return [];
    this.#isChanged = false;
    const context = { ...this.#options, policies: this.#options.policies() };
    for (const [key, { object, reading }] of this.#objects) {
      if (!this.#findings.has(key)) this.#findings.set(key, findResource(object, reading, context));
    }
    this.#ranked = faultsAmongAll([...this.#findings.values()]);
    const before = this.#accepted;
    this.#accepted = new Map(
      [...this.#findings].flatMap(([key, findings]) => {
        const resource = acceptedResource(findings, faultsOf(this.#ranked, findings));
        return resource === undefined ? [] : [[key, resource] as const];
      }),
    );
    this.#owners = new Map(
      [...this.#accepted.values()].map(({ identifier, namespace }) => [withoutFinalSlash(identifier), namespace]),
    );
    const keys = new Set([...before.keys(), ...this.#accepted.keys()]);
    return [...keys].filter((key) => before.get(key)?.spec !== this.#accepted.get(key)?.spec);
  }

  /** The accepted resources as of the last {@link settle}, by `<namespace>/<name>`. */
  get accepted(): ReadonlyMap<string, AcceptedResource> {
    return this.#accepted;
  }

  /** The namespace of the resource that has an identifier, as of the last {@link settle}. */
  readonly ownerOf: OwnerOf = (identifier) => this.#owners.get(withoutFinalSlash(identifier));

  /** Of the resources of this install. */
  keys(): Iterable<string> {
    return this.#objects.keys();
  }

  /** The object of a resource; undefined when it is none of this install. */
  get(key: string): Source | undefined {
    return this.#objects.get(key)?.object;
  }

  /** The verdict as of the last {@link settle}; undefined when it is no resource of this install. */
  verdict(key: string, programmed: Programmed = NOT_OBSERVED): ResourceVerdict<Source> | undefined {
    const findings = this.#findings.get(key);
    return findings && resourceVerdict(findings, faultsOf(this.#ranked, findings), programmed);
  }
}

function keyOf({ namespace, name }: SourceObject): string {
  return [namespace, name].join('/');
}
