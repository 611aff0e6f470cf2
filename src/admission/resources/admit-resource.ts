// Admission of one ProtectedResource: from the manifest and the policies to a resource, or to conditions with reason and
// message. The faults that follow from the set of all resources: rank-resources.ts.

import { withoutFinalSlash } from '../../oauth/registry/resources.ts';
import type { DefaultPolicy } from '../kinds/client-policy.ts';
import {
  type Condition,
  failing,
  type Programmed,
  pending,
  RESOURCE_FAULTS,
  readyCondition,
} from '../kinds/conditions.ts';
import { readManifest, type SourceObject, type UnknownFields } from '../kinds/manifest.ts';
import { PROTECTED_RESOURCE, type ProtectedResourceSpec } from '../kinds/protected-resource.ts';
import type { Policy } from '../policies/policy-violations.ts';
import { validateResourceAgainstPolicies } from '../policies/resource-policy.ts';
import { derivedIdentifier } from './resource-identifier.ts';
import { type ResourceFault, resourceFaults } from './resource-rules.ts';

/** The settings, policies and labels that a resource is validated against. */
export interface ResourceContext {
  /** The issuer of the install; undefined where it is not known (`check`). */
  readonly issuer: string | undefined;
  /** The namespace of grantry itself; undefined where resources may live in every namespace (`dev`, `check`). */
  readonly reservedNamespace: string | undefined;
  /** The policies of this install's class. */
  readonly policies: readonly Policy[];
  readonly defaultPolicy: DefaultPolicy;
  /** Undefined while the namespace is not observed. */
  readonly namespaceLabels: (namespace: string) => Readonly<Record<string, string>> | undefined;
}

/** An accepted resource. */
export interface AcceptedResource {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly identifier: string;
  readonly spec: ProtectedResourceSpec;
}

/**
 * A refused resource that holds its identifier. It grants nothing, and what its owner restricts stays: else a fault in a
 * manifest would loosen what an administrator permits there.
 */
export type WithheldResource = Omit<AcceptedResource, 'uid'>;

/** The result of validating one manifest alone. */
export interface ResourceFindings<Source extends SourceObject = SourceObject> {
  readonly object: Source;
  /** Given or derived. */
  readonly identifier: string;
  /** Undefined when it is not a well-shaped ProtectedResource. */
  readonly spec: ProtectedResourceSpec | undefined;
  /** Whether no policy could be chosen yet. */
  readonly awaitsNamespace: boolean;
  readonly faults: readonly ResourceFault[];
  /** What it claims alone; undefined where it may not claim it. */
  readonly claim: string | undefined;
  /** Whether a policy lists the identifier letter by letter. */
  readonly isListed: boolean;
  readonly maxResourcesPerNamespace: number;
}

/** The result of admission for one ProtectedResource among all others. */
export interface ResourceVerdict<Source extends SourceObject = SourceObject> {
  readonly object: Source;
  readonly identifier: string;
  /** Undefined unless it is accepted. */
  readonly resource: AcceptedResource | undefined;
  /** Undefined unless it is refused and holds its identifier. */
  readonly withheld: WithheldResource | undefined;
  /** Every fault, not only those that the conditions name. */
  readonly faults: readonly ResourceFault[];
  /** Accepted, Programmed, Ready, in this order. */
  readonly conditions: readonly Condition[];
}

const WITHOUT_CLAIM: readonly string[] = ['NamespaceReserved', 'InvalidResource', 'NoMatchingPolicy'];

/** A manifest as the schema reads it. */
export type ResourceReading = ReturnType<typeof readResource>;

/** Reads a manifest. Never throws, whatever it is. */
export function readResource(manifest: unknown, unknownFields: UnknownFields) {
  return readManifest(PROTECTED_RESOURCE[unknownFields], manifest);
}

/** The findings about one manifest as if it were alone. */
export function findResource<Source extends SourceObject>(
  object: Source,
  { manifest, faults }: ResourceReading,
  context: ResourceContext,
): ResourceFindings<Source> {
  const alone = { object, isListed: false, maxResourcesPerNamespace: 0, claim: undefined };
  if (manifest === undefined) {
    return { ...alone, identifier: derivedIdentifier(object), spec: undefined, awaitsNamespace: false, faults };
  }
  const { spec } = manifest;
  const { namespace } = object;
  const identifier = spec.resource ?? derivedIdentifier(object);
  const ruleFaults = [
    ...namespaceFaults(namespace, context),
    ...resourceFaults(spec, { identifier, namespace, issuer: context.issuer }),
  ];
  const namespaceLabels = context.namespaceLabels(namespace);
  const read = { ...alone, identifier, spec };
  if (namespaceLabels === undefined) return { ...read, awaitsNamespace: true, faults: ruleFaults };
  const scopes = spec.scopes.map(({ name }) => name);
  const byPolicy = validateResourceAgainstPolicies(
    { namespace, namespaceLabels, identifier, scopes },
    context.policies,
    context.defaultPolicy,
  );
  const isBroken = (path: ResourceFault['path']) => ruleFaults.some((fault) => fault.path.join() === path.join());
  // No policy could permit what the protocol itself refuses: one field, one message.
  const all = [...ruleFaults, ...byPolicy.faults.filter(({ path }) => !isBroken(path))];
  return {
    ...read,
    awaitsNamespace: false,
    faults: all,
    // One that is refused for another field keeps its identifier: else another resource could take it over meanwhile.
    claim: all.some(deniesIdentifier) ? undefined : withoutFinalSlash(identifier),
    isListed: byPolicy.isListed,
    maxResourcesPerNamespace: byPolicy.maxResourcesPerNamespace,
  };
}

function namespaceFaults(namespace: string, { reservedNamespace }: ResourceContext): readonly ResourceFault[] {
  if (namespace !== reservedNamespace) return [];
  const message = 'Resources cannot live in the namespace that grantry itself runs in.';
  return [{ path: ['metadata', 'namespace'], reason: 'NamespaceReserved', message }];
}

function deniesIdentifier({ reason, path }: ResourceFault): boolean {
  const isOfIdentifier = path.length === 0 || path.join() === 'spec,resource';
  return WITHOUT_CLAIM.includes(reason) || (reason === 'PolicyViolation' && isOfIdentifier);
}

/** The resource by these findings; undefined where it is not accepted. @param amongAll as of {@link resourceVerdict} */
export function acceptedResource(
  { object, identifier, spec, awaitsNamespace, faults }: ResourceFindings,
  amongAll: readonly ResourceFault[],
): AcceptedResource | undefined {
  if (spec === undefined || awaitsNamespace || faults.length > 0 || amongAll.length > 0) return undefined;
  const { uid, namespace, name } = object;
  return { uid, namespace, name, identifier, spec };
}

/** The withheld resource by these findings; undefined where it is accepted, cannot be read or may not have its identifier. */
export function withheldResource(
  { object, identifier, spec, claim, faults }: ResourceFindings,
  amongAll: readonly ResourceFault[],
): WithheldResource | undefined {
  if (spec === undefined || claim === undefined || faults.length + amongAll.length === 0) return undefined;
  if (amongAll.some(({ reason }) => reason === 'ResourceConflict')) return undefined;
  const { namespace, name } = object;
  return { namespace, name, identifier, spec };
}

/**
 * The verdict by these findings.
 * @param amongAll the faults that follow from the set of all resources
 * @param programmed whether the replicas serve the present generation
 */
export function resourceVerdict<Source extends SourceObject>(
  findings: ResourceFindings<Source>,
  amongAll: readonly ResourceFault[],
  programmed: Programmed,
): ResourceVerdict<Source> {
  const { object, identifier, awaitsNamespace } = findings;
  const { generation } = object;
  const faults = [...findings.faults, ...amongAll];
  const accepted =
    failing('Accepted', faults, RESOURCE_FAULTS, generation) ??
    (awaitsNamespace
      ? pending('Accepted', 'The labels of its namespace are not known yet.', generation)
      : { ...ACCEPTED, observedGeneration: generation });
  const isAccepted = accepted.status === 'True';
  const served: Condition = isAccepted
    ? { type: 'Programmed', ...programmed, observedGeneration: generation }
    : pending('Programmed', 'There is nothing to serve yet.', generation);
  return {
    object,
    identifier,
    resource: acceptedResource(findings, amongAll),
    withheld: withheldResource(findings, amongAll),
    faults,
    conditions: [accepted, served, readyCondition([accepted, served], generation)],
  };
}

const ACCEPTED = { type: 'Accepted', status: 'True', reason: 'Accepted', message: 'Accepted.' } as const;
