// Validates a folder of manifests: the verdict on every object, and every fault with its place. `check` prints the result;
// `dev` serves it (manifest-registry.ts).

import type { ClientVerdict } from '../admission/clients/admit-client.ts';
import { ClientSet, isServed } from '../admission/clients/client-set.ts';
import { revokedUntilWarning } from '../admission/clients/revoked-until.ts';
import { clientAccounts, missingAccountFaults } from '../admission/clients/service-accounts.ts';
import { missingProviders } from '../admission/clients/sign-in-limits.ts';
import { admitProviders, type ProviderVerdict } from '../admission/identity-providers/admit-providers.ts';
import type { KeyVerdict } from '../admission/keys/admit-key.ts';
import { admitKeys } from '../admission/keys/admit-keys.ts';
import type { DefaultPolicy } from '../admission/kinds/client-policy.ts';
import type { Condition, Fault, Programmed, Reachable } from '../admission/kinds/conditions.ts';
import { classOf, DEFAULT_CLASS, type UnknownFields } from '../admission/kinds/manifest.ts';
import { admitPolicies, type PolicyVerdict } from '../admission/policies/admit-policies.ts';
import { ambiguityMessage, ambiguousClientIds } from '../admission/policies/ambiguous-client-ids.ts';
import { matchesSelector } from '../admission/policies/label-selector.ts';
import type { References } from '../admission/references/references.ts';
import type { ResourceVerdict } from '../admission/resources/admit-resource.ts';
import { AdmittedResources } from '../admission/resources/admitted-resources.ts';
import { grantsCondition, ungrantedReferences } from '../admission/resources/resource-grants.ts';
import type { ManifestSet } from '../manifests/manifest-folder.ts';
import type { ManifestKind, ManifestObject } from '../manifests/objects.ts';
import { formatPlace, type ManifestFault } from '../manifests/place.ts';
import { manifestReferences, type ReferenceOptions } from '../manifests/references.ts';
import { type UsersList, unreadUserFiles, usersIn, usersInFiles } from './users-in-manifests.ts';

/** How a folder is validated. */
export interface ValidationOptions {
  /** Undefined where it is not known. */
  readonly issuer: string | undefined;
  /** Whether a field that does not exist is a fault, or a warning. The validation ignores it in both cases. */
  readonly unknownFields: UnknownFields;
  /** The wire names of the authentication methods that clients may have. */
  readonly supportedAuthMethods: readonly string[];
  /** Epoch milliseconds. */
  readonly now: number;
  /** The classes whose objects are validated: the default one, or every class by itself. */
  readonly classes: 'default' | 'every';
  /** The only namespace whose SigningKeys and IdentityProviders are accepted; undefined where it is not known: then every namespace is. */
  readonly releaseNamespace: string | undefined;
  /** The same where OAuthClients and ProtectedResources are refused there. */
  readonly reservedNamespace: string | undefined;
  readonly defaultPolicy: DefaultPolicy;
  readonly references: Pick<ReferenceOptions, 'verifiersOf' | 'assumeMissing'>;
  readonly programmed: Programmed;
  /** Whether the sources of IdentityProviders are reached. */
  readonly reachable: Reachable;
  /** What becomes of a bare list of users, which no command serves from a folder. */
  readonly userFiles: 'check' | 'refuse';
}

/** All results of the validation: for reports, for the registry and for the audit stream. */
export interface ManifestVerdicts {
  readonly clients: readonly ClientVerdict<ManifestObject>[];
  readonly keys: readonly KeyVerdict<ManifestObject>[];
  readonly policies: readonly PolicyVerdict<ManifestObject>[];
  readonly resources: readonly ResourceVerdict<ManifestObject>[];
  readonly providers: readonly ProviderVerdict<ManifestObject>[];
  /** `ResourcesGranted` of each client that refers to a resource, by its uid. */
  readonly grants: ReadonlyMap<string, Condition>;
  /** The labels of every namespace that the folder holds or that one of its objects is in. */
  readonly namespaces: ReadonlyMap<string, Labels>;
  /** Every fault once, sorted by file and line. */
  readonly faults: readonly ManifestFault[];
  readonly warnings: readonly ManifestFault[];
  /**
   * Valid but rarely intended: entries of `allow.clientIds` that two namespaces share, a `revokeTokensBefore` of
   * a client, person or identity provider in the future, a missing ServiceAccount beside others, a reference to a
   * resource that no manifest grants, a client for people of a provider that no manifest has. Sorted as the faults are.
   */
  readonly advisories: readonly ManifestFault[];
  /** The ignored kinds, and the ignored objects of other classes, each once. */
  readonly ignoredKinds: readonly string[];
  readonly files: readonly string[];
  /** Broken files whose last good state is used. */
  readonly staleFiles: readonly string[];
  /** The lists of people in Secrets of any namespace, valid or not. */
  readonly userLists: readonly UsersList[];
  /** The number of users in Secrets and bare files without a fault. */
  readonly userCount: number;
}

/** Validates a folder. Never throws, for any content. */
export async function validateManifests(set: ManifestSet, options: ValidationOptions): Promise<ManifestVerdicts> {
  const of = (kind: ManifestKind) => set.objects.filter((object) => object.kind === kind);
  const references = manifestReferences({ objects: set.objects, ...options.references });
  const { issuer, releaseNamespace, reservedNamespace } = options;
  const unknownFields = 'ignore';
  const isStrict = options.unknownFields === 'refuse';
  const classed = [...of('ClientPolicy'), ...of('OAuthClient'), ...of('ProtectedResource')];
  const classes = options.classes === 'default' ? [DEFAULT_CLASS] : distinct(classed.map(classNameOf));
  const byClass = classes.map((className) => {
    const policies = admitPolicies({ className, unknownFields, policies: of('ClientPolicy') });
    const resources = new AdmittedResources<ManifestObject>({
      className,
      issuer,
      unknownFields,
      reservedNamespace,
      policies: () => policies.map(({ policy }) => policy),
      defaultPolicy: options.defaultPolicy,
      namespaceLabels: references.namespaceLabels,
    });
    for (const object of of('ProtectedResource')) resources.put(object);
    resources.recompute();
    const set = new ClientSet<ManifestObject>({
      issuer,
      unknownFields,
      reservedNamespace,
      policies: () => policies.map(({ policy }) => policy),
      defaultPolicy: options.defaultPolicy,
      ownerOf: resources.ownerOf,
      supportedAuthMethods: options.supportedAuthMethods,
      namespaceLabels: references.namespaceLabels,
      factsOf: () => ({ ...references, programmed: options.programmed }),
    });
    for (const object of of('OAuthClient')) if (isServed(object, className)) set.put(object);
    return { policies, clients: set.validateAll(), resources };
  });
  const policies = byClass.flatMap((validated) => validated.policies);
  const clients = byClass.flatMap((validated) => validated.clients);
  const resources = byClass.flatMap((validated) =>
    [...validated.resources.keys()].flatMap((key) => validated.resources.verdict(key, options.programmed) ?? []),
  );
  const keys = await admitKeys(of('SigningKey'), { unknownFields, releaseNamespace, references });
  const providers = admitProviders(of('IdentityProvider'), {
    unknownFields,
    releaseNamespace,
    secret: references.secret,
    observed: () => options,
  });
  const providerNames = new Set(providers.map(({ object }) => object.name));
  const users = usersIn(of('Secret'), { now: options.now, providers: providerNames });
  const bare =
    options.userFiles === 'check'
      ? usersInFiles(set.userFiles, options.now)
      : { count: 0, faults: unreadUserFiles(set.userFiles), advisories: [] };
  const found = [...policies, ...clients, ...resources, ...keys, ...providers].flatMap(placedFaults);
  const grants = byClass.flatMap((validated) =>
    validated.clients.flatMap((verdict) => grantsOf(verdict, validated.resources, references) ?? []),
  );
  const namespaces = labelsOfNamespaces(set.objects, references);
  return {
    clients,
    keys,
    policies,
    resources,
    providers,
    grants: new Map(grants.map(({ uid, condition }) => [uid, condition])),
    namespaces,
    faults: sortedFaults([...set.faults, ...(isStrict ? set.warnings : []), ...found, ...users.faults, ...bare.faults]),
    warnings: isStrict ? [] : set.warnings,
    advisories: sortedFaults([
      ...policies.flatMap((verdict) => ambiguitiesIn(verdict, [...namespaces.values()])),
      ...clients.flatMap((verdict) => futureRevocation(verdict, options.now)),
      ...providers.flatMap((verdict) => futureRevocation(verdict, options.now, 'its people are shut out')),
      ...clients.flatMap((verdict) => missingAccounts(verdict, references)),
      ...grants.flatMap(({ ungranted }) => ungranted),
      ...clients.flatMap((verdict) => unknownProviders(verdict, providerNames)),
      ...users.advisories,
      ...bare.advisories,
    ]),
    ignoredKinds: [
      ...set.ignoredKinds,
      ...classed.filter((object) => !classes.includes(classNameOf(object))).map(otherClassLine),
    ],
    files: set.files,
    staleFiles: set.staleFiles,
    userLists: users.lists,
    userCount: users.count + bare.count,
  };
}

/** `Ready` of a client, key or provider. */
export function readyOf({ conditions }: { readonly conditions: readonly Condition[] }): Condition {
  return conditions.find(({ type }) => type === 'Ready') as Condition;
}

/** Each fault once (the schema and the rules may find the same one), in the order of the files. */
export function sortedFaults(faults: readonly ManifestFault[]): readonly ManifestFault[] {
  const once = new Map(faults.map((fault) => [`${formatPlace(fault.place)} ${fault.reason}`, fault]));
  return [...once.values()].sort(byPlace);
}

function byPlace(a: ManifestFault, b: ManifestFault): number {
  if (a.place.file !== b.place.file) return a.place.file < b.place.file ? -1 : 1;
  return (a.place.line ?? 0) - (b.place.line ?? 0);
}

function placedFaults(verdict: {
  readonly object: ManifestObject;
  readonly faults: readonly Fault<string>[];
}): readonly ManifestFault[] {
  const { object, faults } = verdict;
  return faults.map(({ path, reason, message }) => ({ place: object.locate(path), reason, message }));
}

type Labels = NonNullable<ReturnType<References['namespaceLabels']>>;

function labelsOfNamespaces(
  objects: readonly ManifestObject[],
  { namespaceLabels }: References,
): ReadonlyMap<string, Labels> {
  const names = objects.map(({ kind, namespace, name }) => (kind === 'Namespace' ? name : namespace));
  return new Map(names.filter((name) => name !== '').map((name) => [name, namespaceLabels(name) ?? {}]));
}

function ambiguitiesIn(
  { object, policy }: PolicyVerdict<ManifestObject>,
  namespaceLabels: readonly Labels[],
): readonly ManifestFault[] {
  const selected = namespaceLabels.filter((labels) => matchesSelector(policy.namespaceSelector, labels)).length;
  return ambiguousClientIds(policy, selected).map((entry) => ({
    place: object.locate(['spec', 'allow', 'clientIds', entry.index]),
    reason: 'AmbiguousClientIds',
    message: ambiguityMessage([entry]),
  }));
}

function futureRevocation(
  { object, manifest }: ClientVerdict<ManifestObject> | ProviderVerdict<ManifestObject>,
  now: number,
  effect?: string,
): readonly ManifestFault[] {
  const warning = manifest && revokedUntilWarning(manifest.spec, now, effect);
  if (warning === undefined) return [];
  const { path, reason, message } = warning;
  return [{ place: object.locate(path), reason, message }];
}

/** Of a client that is served by the tokens of its other accounts. */
function missingAccounts(
  { object, manifest, client }: ClientVerdict<ManifestObject>,
  references: References,
): readonly ManifestFault[] {
  if (manifest === undefined || client === undefined) return [];
  const faults = missingAccountFaults(manifest.spec, clientAccounts(object, manifest.spec, references));
  return faults.map(({ path, reason, message }) => ({ place: object.locate(path), reason, message }));
}

/** The granted references of a client, and those that nothing in the folder grants: the cluster may hold it. */
function grantsOf(
  { object, manifest }: ClientVerdict<ManifestObject>,
  resources: AdmittedResources<ManifestObject>,
  { namespaceLabels }: References,
) {
  if (manifest === undefined) return undefined;
  const { namespace, name, uid, generation } = object;
  const client = { namespace, name, namespaceLabels: namespaceLabels(namespace), spec: manifest.spec };
  const faults = ungrantedReferences(client, resources.accepted);
  const condition = grantsCondition(client, faults, generation);
  if (condition === undefined) return undefined;
  const ungranted = faults.map(({ path, reason, message }) => ({ place: object.locate(path), reason, message }));
  return { uid, condition, ungranted };
}

/** Names of providers that no file has, where files have providers at all. */
function unknownProviders(
  { object, manifest }: ClientVerdict<ManifestObject>,
  providers: ReadonlySet<string>,
): readonly ManifestFault[] {
  if (manifest === undefined) return [];
  return missingProviders(manifest.spec, providers).map(({ path, reason, message }) => ({
    place: object.locate(path),
    reason,
    message,
  }));
}

function classNameOf({ manifest }: ManifestObject): string {
  return classOf(manifest);
}

function otherClassLine({ kind, namespace, name }: ManifestObject): string {
  return `${kind} ${namespace === '' ? '' : `${namespace}/`}${name} of another class`;
}

function distinct<Value>(values: readonly Value[]): readonly Value[] {
  return [...new Set(values)];
}
