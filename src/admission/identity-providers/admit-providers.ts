// Admission of IdentityProviders. An install has few, so each change validates all of them: each alone, then against the
// older ones.

import { type IdentityProvider, LOCAL_USERS } from '../../oauth/registry/identity-provider.ts';
import {
  type Condition,
  type Fault,
  failing,
  PROVIDER_FAULTS,
  PROVIDER_SECRET_FAULTS,
  type Programmed,
  type ProviderFaultReason,
  pending,
  type Reachable,
  readyCondition,
} from '../kinds/conditions.ts';
import { IDENTITY_PROVIDER, type IdentityProviderManifest } from '../kinds/identity-provider.ts';
import { fieldsOf, readManifest, type SourceObject, type UnknownFields } from '../kinds/manifest.ts';
import { quoted } from '../kinds/quoted.ts';
import { peopleSource, sourceKey } from './people-source.ts';
import { type ProviderSecret, readProviderSecret, type SecretReading } from './provider-secret.ts';
import { registryProvider, unlessSameProviders, unreadableProvider } from './registry-provider.ts';

/** The most providers that one install has. */
const PROVIDERS_MAX = 16;

export type ProviderFault = Fault<ProviderFaultReason>;

/** What the replicas were observed to serve and to reach of one provider. */
export interface ProviderObservation {
  readonly reachable: Reachable;
  readonly programmed: Programmed;
}

/** The settings and objects that IdentityProviders are validated against. */
export interface ProvidersContext {
  readonly unknownFields: UnknownFields;
  /** The only namespace whose providers are accepted; undefined where it is not known: then every namespace is. */
  readonly releaseNamespace: string | undefined;
  /** The Secret of a name in the namespace of a provider. */
  readonly secret: (namespace: string, name: string) => ProviderSecret;
  readonly observed: (object: SourceObject) => ProviderObservation;
}

/** The result of admission for one IdentityProvider among all others. */
export interface ProviderVerdict<Source extends SourceObject = SourceObject> {
  readonly object: Source;
  /** Undefined when it is not a well-shaped IdentityProvider. */
  readonly manifest: IdentityProviderManifest | undefined;
  readonly faults: readonly ProviderFault[];
  /** Accepted, ResolvedRefs, Reachable, Programmed, Ready, in this order. */
  readonly conditions: readonly Condition[];
  /**
   * As the registry has it; a provider with a fault has no credentials there, which disables sign-in and ends no session.
   * Undefined where the registry ignores it.
   */
  readonly provider: IdentityProvider | undefined;
}

/** Validates every provider, in the order given. Never throws, for any manifest. */
export function admitProviders<Source extends SourceObject>(
  objects: readonly Source[],
  context: ProvidersContext,
): readonly ProviderVerdict<Source>[] {
  const findings = objects.map((object) => findProvider(object, context));
  const amongAll = faultsAmongAll(findings);
  return findings.map((found) => verdictOf(found, amongAll.get(found) ?? [], context));
}

/**
 * The providers of a registry, oldest first.
 * @param verdicts of one namespace
 * @param before the providers so far: each that does not differ stays the same object, and so does the list
 */
export function registryProviders(
  verdicts: readonly ProviderVerdict[],
  before: readonly IdentityProvider[] = [],
): readonly IdentityProvider[] {
  return unlessSameProviders(
    before,
    verdicts.toSorted(byAge).flatMap(({ provider }) => provider ?? []),
  );
}

/** The result of validating one manifest alone. */
interface Findings<Source extends SourceObject> {
  readonly object: Source;
  readonly manifest: IdentityProviderManifest | undefined;
  readonly faults: readonly ProviderFault[];
  readonly secret: SecretReading | undefined;
  /** What it claims alone: undefined where it can never be accepted. */
  readonly claim: string | undefined;
}

function findProvider<Source extends SourceObject>(object: Source, context: ProvidersContext): Findings<Source> {
  const { manifest, faults } = readManifest(IDENTITY_PROVIDER[context.unknownFields], object.manifest);
  const misplaced = placeFaults(object, context);
  if (manifest === undefined) {
    return { object, manifest, faults: [...faults, ...misplaced], secret: undefined, claim: undefined };
  }
  const { spec } = manifest;
  const source = peopleSource(spec);
  const unusable = [...misplaced, ...typeFaults(spec.type, source !== undefined)];
  const secret = readProviderSecret(spec, context.secret(object.namespace, spec.clientSecretRef.name));
  return {
    object,
    manifest,
    faults: [...unusable, ...organizationFaults(manifest), ...secret.faults],
    secret,
    claim: source === undefined || unusable.length > 0 ? undefined : `${object.namespace} ${sourceKey(source)}`,
  };
}

function placeFaults(
  { namespace, name }: SourceObject,
  { releaseNamespace }: ProvidersContext,
): readonly ProviderFault[] {
  const faults: ProviderFault[] = [];
  if (releaseNamespace !== undefined && namespace !== releaseNamespace) {
    const message = `IdentityProviders are accepted only in ${releaseNamespace}, the namespace that grantry runs in.`;
    faults.push({ path: ['metadata', 'namespace'], reason: 'NamespaceNotHonoured', message });
  }
  if (name === LOCAL_USERS) {
    const message = `The name ${LOCAL_USERS} stands for the users of grantry itself.`;
    faults.push({ path: ['metadata', 'name'], reason: 'NameReserved', message });
  }
  return faults;
}

function typeFaults(type: string, isKnown: boolean): readonly ProviderFault[] {
  if (isKnown) return [];
  const message = `There is no type ${quoted(type)} in this version; there are OIDC and GitHub.`;
  return [{ path: ['spec', 'type'], reason: 'UnsupportedType', message }];
}

function organizationFaults({ spec: { type, gitHub } }: IdentityProviderManifest): readonly ProviderFault[] {
  if (type !== 'GitHub' || gitHub?.anyone === true || (gitHub?.organizations.length ?? 0) > 0) return [];
  const message =
    'Everyone with a GitHub account could sign in: list organizations, or set spec.gitHub.anyone to true.';
  return [{ path: ['spec', 'gitHub', 'organizations'], reason: 'OrganizationsMissing', message }];
}

/** One that is refused for now, suspended or without its Secret keeps its place: a younger one must not slip in meanwhile. */
function faultsAmongAll<Source extends SourceObject>(
  all: readonly Findings<Source>[],
): ReadonlyMap<Findings<Source>, readonly ProviderFault[]> {
  const faults = new Map<Findings<Source>, readonly ProviderFault[]>();
  const held = new Set<string>();
  const places = new Map<string, number>();
  for (const found of all.toSorted(byAge)) {
    const { claim, object } = found;
    if (claim === undefined) continue;
    const taken = places.get(object.namespace) ?? 0;
    if (held.has(claim)) faults.set(found, [issuerTaken(found.manifest?.spec.type)]);
    else if (taken >= PROVIDERS_MAX) faults.set(found, [TOO_MANY]);
    else places.set(object.namespace, taken + 1);
    held.add(claim);
  }
  return faults;
}

function issuerTaken(type: string | undefined): ProviderFault {
  const path = type === 'GitHub' ? ['spec', 'gitHub', 'host'] : ['spec', 'oidc', 'issuer'];
  return { path, reason: 'IssuerTaken', message: 'Another IdentityProvider already uses this issuer.' };
}

const TOO_MANY: ProviderFault = {
  path: ['metadata', 'name'],
  reason: 'TooManyProviders',
  message: `At most ${PROVIDERS_MAX} IdentityProviders are accepted, and ${PROVIDERS_MAX} are older.`,
};

function byAge(
  { object: one }: { readonly object: SourceObject },
  { object: other }: { readonly object: SourceObject },
) {
  return one.createdAt - other.createdAt || (one.uid < other.uid ? -1 : 1);
}

function verdictOf<Source extends SourceObject>(
  found: Findings<Source>,
  amongAll: readonly ProviderFault[],
  { observed }: ProvidersContext,
): ProviderVerdict<Source> {
  const { object, manifest } = found;
  const faults = [...found.faults, ...amongAll];
  return {
    object,
    manifest,
    faults,
    conditions: conditionsOf(found, faults, observed(object)),
    provider: standingProvider(found, faults),
  };
}

function standingProvider(
  { object, manifest, secret }: Findings<SourceObject>,
  faults: readonly ProviderFault[],
): IdentityProvider | undefined {
  const isElsewhere = faults.some(({ reason }) => reason === 'NamespaceNotHonoured' || reason === 'NameReserved');
  const { deletionTimestamp } = fieldsOf(fieldsOf(object.manifest).metadata);
  if (isElsewhere || (deletionTimestamp ?? undefined) !== undefined) return undefined;
  if (manifest === undefined) return unreadableProvider(object);
  const credentials = faults.length === 0 ? secret?.credentials : undefined;
  return registryProvider(object, manifest.spec, credentials === 'assumed' ? undefined : credentials);
}

function conditionsOf(
  { object: { generation }, manifest, secret }: Findings<SourceObject>,
  faults: readonly ProviderFault[],
  { reachable, programmed }: ProviderObservation,
): readonly Condition[] {
  const accepted = acceptedCondition(manifest, faults, generation);
  const resolved = resolvedCondition(secret, generation);
  const isUsed = accepted.status === 'True' && resolved.status === 'True';
  const observedGeneration = generation;
  const others: readonly Condition[] = [
    accepted,
    resolved,
    isUsed
      ? { type: 'Reachable', ...reachable, observedGeneration }
      : pending('Reachable', 'No sign-in by it is possible yet.', generation),
    accepted.status === 'True'
      ? { type: 'Programmed', ...programmed, observedGeneration }
      : pending('Programmed', 'There is nothing to serve yet.', generation),
  ];
  return [...others, readyCondition(others, generation)];
}

function acceptedCondition(
  manifest: IdentityProviderManifest | undefined,
  faults: readonly ProviderFault[],
  observedGeneration: number,
): Condition {
  const type = 'Accepted';
  const fault = failing(type, faults, PROVIDER_FAULTS, observedGeneration);
  if (fault !== undefined) return fault;
  if (manifest?.spec.suspended === true) {
    const message =
      "spec.suspended is true. Sign-in through this provider is disabled; its users' sessions and tokens are rejected.";
    return { type, status: 'False', reason: 'Suspended', message, observedGeneration };
  }
  return { type, status: 'True', reason: 'Accepted', message: 'Accepted.', observedGeneration };
}

function resolvedCondition(secret: SecretReading | undefined, observedGeneration: number): Condition {
  const type = 'ResolvedRefs';
  if (secret === undefined) return pending(type, 'The manifest cannot be read.', observedGeneration);
  const fault = failing(type, secret.faults, PROVIDER_SECRET_FAULTS, observedGeneration);
  if (fault !== undefined) return fault;
  return { type, status: 'True', reason: 'ResolvedRefs', message: 'The Secret is usable.', observedGeneration };
}
