// Admission of one OAuthClient, the same for every caller: computes the client, or conditions with reason and message,
// from the manifest, the policies and the objects that the manifest refers to. The caller adds the faults that follow
// from the set of all clients: duplicate ids and Secrets, exceeded limits (client-uniqueness.ts).

import type { Client } from '../../oauth/registry/client.ts';
import type { DefaultPolicy } from '../kinds/client-policy.ts';
import { type Condition, type Fault, type Programmed, pending, readyCondition } from '../kinds/conditions.ts';
import { audiencesIn } from '../kinds/default-audience.ts';
import type { FieldPath } from '../kinds/field-path.ts';
import { type ObjectIdentity, readManifest, type SourceObject, type UnknownFields } from '../kinds/manifest.ts';
import { OAUTH_CLIENT, type OAuthClientManifest } from '../kinds/oauth-client.ts';
import { BASELINE_POLICY, type RequestVerdict, validateAgainstPolicies } from '../policies/policy.ts';
import type { OwnerOf, Policy } from '../policies/policy-violations.ts';
import type { References } from '../references/references.ts';
import { certificateSettings } from './certificate-rules.ts';
import { acceptedCondition, referenceConditions, unreadableConditions } from './client-conditions.ts';
import { clientFaults } from './client-rules.ts';
import { type Credentials, resolveCredentials } from './credentials.ts';
import { EVERY_GROUP, idTokenSettings } from './openid-rules.ts';
import { signInLimits } from './sign-in-limits.ts';

/** What the verdict on a client depends on beside its manifest: the settings, policies and objects of one install. */
export interface AdmissionContext {
  /** The issuer of the install; undefined where it is not known (`check`). */
  readonly issuer: string | undefined;
  readonly unknownFields: UnknownFields;
  /** The namespace of grantry itself, where OAuthClients are refused; undefined: none is (`dev`), or it is not known. */
  readonly reservedNamespace: string | undefined;
  /** The policies of this install's class. */
  readonly policies: readonly Policy[];
  readonly defaultPolicy: DefaultPolicy;
  readonly ownerOf: OwnerOf;
  readonly references: References;
  /** The keys of the protocol's tables. */
  readonly supportedGrantTypes: readonly string[];
  readonly supportedAuthMethods: readonly string[];
  /** Whether the replicas serve the present generation of this object. */
  readonly programmed: (uid: string) => Programmed;
}

/** A manifest after parsing by the schema. */
export interface ReadManifest {
  /** Undefined when it is not a well-shaped OAuthClient. */
  readonly manifest: OAuthClientManifest | undefined;
  readonly faults: readonly Fault[];
  /** The result of {@link clientFaults} where the caller has it already. */
  readonly ruleFaults?: readonly Fault[] | undefined;
}

/** The result of admission for one OAuthClient. */
export interface ClientVerdict<Source extends ObjectIdentity = SourceObject> {
  readonly object: Source;
  /** The id it has or would have; the derived one where the manifest cannot be read. */
  readonly clientId: string;
  /** Undefined when it is not a well-shaped OAuthClient. */
  readonly manifest: OAuthClientManifest | undefined;
  /** The policy that permits or refuses it; `(baseline)` and `(allow-all)` are built in. */
  readonly policy: string | undefined;
  /** The client to serve; undefined unless it is accepted, its references resolve and its credentials are available. */
  readonly client: Client | undefined;
  /** Accepted, ResolvedRefs, CredentialsReady, Programmed, Ready, in this order. */
  readonly conditions: readonly Condition[];
  /** Every fault, not only those that the conditions name. */
  readonly faults: readonly Fault[];
  /** Whether only a generated secret is missing: the caller generates one, stores its verifier, and validates again. */
  readonly wantsSecret: boolean;
}

/** The result of validating one manifest by itself, without the faults that follow from the set of all clients. */
export interface ClientFindings<Source extends ObjectIdentity = ObjectIdentity> {
  readonly object: Source;
  readonly clientId: string;
  /** Whether the id is the derived one. */
  readonly derived: boolean;
  readonly manifest: OAuthClientManifest | undefined;
  /** Whether no policy could be chosen yet. */
  readonly awaitsNamespace: boolean;
  readonly policy: string | undefined;
  readonly maxClientsPerNamespace: number;
  /** See {@link Client.maxState}. */
  readonly maxState: number;
  readonly faults: readonly Fault[];
  readonly credentials: Credentials;
  readonly programmed: Programmed;
}

/** Admits one OAuthClient by itself, without the rules among all clients. Never throws, whatever the manifest is. */
export function admitClient<Source extends SourceObject>(
  object: Source,
  context: AdmissionContext,
): ClientVerdict<Source> {
  return clientVerdict(validateClient(object, context));
}

/** The verdict of the policies while the labels of the namespace are not observed: no policy is evaluated. */
const NOT_EVALUATED: RequestVerdict = { policy: undefined, faults: [], maxClientsPerNamespace: 0, maxState: 0 };

/** Validates one manifest by itself. */
export function validateClient<Source extends SourceObject>(
  object: Source,
  context: AdmissionContext,
): ClientFindings<Source> {
  return validateManifest(object, readManifest(OAUTH_CLIENT[context.unknownFields], object.manifest), context);
}

/** Validates a manifest that is parsed already. */
export function validateManifest<Object extends ObjectIdentity>(
  object: Object,
  { manifest, faults, ruleFaults: known }: ReadManifest,
  context: AdmissionContext,
): ClientFindings<Object> {
  const programmed = context.programmed(object.uid);
  // `join` makes a flat string; a template literal would make one that retains its parts, for every client.
  const derivedId = [object.namespace, object.name].join('.');
  if (manifest === undefined) {
    const unread = { object, clientId: derivedId, derived: true, manifest, awaitsNamespace: false, programmed };
    return {
      ...unread,
      policy: undefined,
      maxClientsPerNamespace: 0,
      maxState: 0,
      faults,
      credentials: { state: 'pending', faults: [] },
    };
  }
  const clientId = manifest.spec.clientId ?? derivedId;
  const derived = clientId === derivedId;
  const namespaceLabels = context.references.namespaceLabels(object.namespace);
  const explicitClientId = derived ? undefined : clientId;
  const { ownerOf } = context;
  const request = { namespace: object.namespace, explicitClientId, spec: manifest.spec, ownerOf };
  const verdict =
    namespaceLabels === undefined
      ? NOT_EVALUATED
      : validateAgainstPolicies({ ...request, namespaceLabels }, context.policies, context.defaultPolicy);
  const ruleFaults = [...namespaceFaults(object, context), ...(known ?? clientFaults(manifest.spec, context))];
  const credentials = resolveCredentials(object, manifest.spec, context.references);
  return {
    object,
    clientId,
    derived,
    manifest,
    awaitsNamespace: namespaceLabels === undefined,
    policy: verdict.policy,
    maxClientsPerNamespace: verdict.maxClientsPerNamespace,
    maxState: verdict.maxState,
    faults: [
      ...ruleFaults,
      // No policy could permit what the protocol itself refuses: one field, one message.
      ...verdict.faults.filter((fault) => !ruleFaults.some((other) => isSamePath(other.path, fault.path))),
      ...credentials.faults,
    ],
    credentials,
    programmed,
  };
}

function namespaceFaults(object: ObjectIdentity, context: AdmissionContext): readonly Fault[] {
  if (object.namespace !== context.reservedNamespace) return [];
  const message = 'Clients cannot live in the namespace that grantry itself runs in.';
  return [{ path: ['metadata', 'namespace'], reason: 'NamespaceReserved', message }];
}

function isSamePath(a: FieldPath, b: FieldPath): boolean {
  return a.length === b.length && a.every((step, index) => step === b[index]);
}

/** What admitted a client that can be served. */
function admittedBy({ policy }: Pick<ClientFindings, 'policy'>): Client['admittedBy'] {
  return policy === BASELINE_POLICY ? 'baseline' : 'policy';
}

/** Whether the client can be served by these findings: {@link clientVerdict} calls it Ready once it is programmed. */
function isSound({ manifest, awaitsNamespace, faults, credentials }: ClientFindings): boolean {
  const isAccepted = manifest?.spec.suspended === false && faults.length === 0 && !awaitsNamespace;
  return isAccepted && credentials.state === 'ready';
}

/**
 * The verdict by these findings.
 * @param amongAll the faults that follow from the set of all clients (client-uniqueness.ts)
 */
export function clientVerdict<Source extends ObjectIdentity>(
  alone: ClientFindings<Source>,
  amongAll: readonly Fault[] = [],
): ClientVerdict<Source> {
  const findings = amongAll.length === 0 ? alone : withFaults(alone, amongAll);
  const { object, clientId, manifest, policy, faults } = findings;
  const accepted = acceptedCondition(findings);
  const others =
    manifest === undefined ? unreadableConditions(object.generation) : referenceConditions(findings, accepted);
  const programmed: Condition = { type: 'Programmed', ...findings.programmed, observedGeneration: object.generation };
  const prerequisites = [accepted, ...others];
  const isReady = prerequisites.every((condition) => condition.status === 'True');
  const { credentials } = findings;
  const conditions = [
    ...prerequisites,
    isReady ? programmed : pending('Programmed', 'There is nothing to serve yet.', object.generation),
  ];
  return {
    object,
    clientId,
    manifest,
    policy,
    faults,
    conditions: [...conditions, readyCondition(conditions, object.generation)],
    client:
      isSound(findings) && manifest !== undefined && credentials.state === 'ready'
        ? clientOf(findings, manifest, credentials)
        : undefined,
    wantsSecret: accepted.status === 'True' && credentials.state === 'toGenerate',
  };
}

function withFaults<Source extends ObjectIdentity>(
  findings: ClientFindings<Source>,
  amongAll: readonly Fault[],
): ClientFindings<Source> {
  const faults = [...findings.faults, ...amongAll];
  // A client whose Secret is written for another client has no secret.
  const lostSecret = amongAll.some(({ reason }) => reason === 'SecretNotOwned');
  return { ...findings, faults, ...(lostSecret && { credentials: { state: 'pending', faults: [] } }) };
}

function clientOf(
  findings: ClientFindings,
  { spec }: OAuthClientManifest,
  credentials: Extract<Credentials, { readonly state: 'ready' }>,
): Client {
  const { object, clientId, maxState } = findings;
  return {
    uid: object.uid,
    clientId,
    namespace: object.namespace,
    name: object.name,
    maxState,
    displayName: spec.displayName ?? clientId,
    clientUri: spec.clientUri,
    policyUri: spec.policyUri,
    tosUri: spec.tosUri,
    revokeTokensBefore: spec.revokeTokensBefore ?? 0,
    authMethod: spec.auth.method,
    secretVerifiers: credentials.verifiers,
    assertion: credentials.assertion,
    certificate: certificateSettings(spec),
    serviceAccounts: credentials.serviceAccounts ?? [],
    senderConstraint: spec.senderConstraint,
    grantTypes: spec.grantTypes,
    redirectUris: spec.redirectUris,
    postLogoutRedirectUris: spec.postLogoutRedirectUris,
    allowedCorsOrigins: spec.allowedCorsOrigins,
    scopes: spec.scopes,
    defaultScopes: spec.defaultScopes,
    groups: spec.groups ?? EVERY_GROUP,
    backchannelLogoutUri: spec.backchannelLogoutUri,
    audiences: audiencesIn(object.namespace, spec),
    resources: spec.resources.map(({ namespace, name, scopes }) => ({ namespace, name, scopes })),
    defaultAudience: spec.defaultAudience,
    resourceServerAudiences: spec.resourceServer.audiences,
    admittedBy: admittedBy(findings),
    consent: spec.consent,
    signIn: signInLimits(spec),
    requireState: spec.requireState,
    tokens: spec.tokens,
    idTokens: idTokenSettings(spec),
  };
}
