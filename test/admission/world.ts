// A small cluster for admission tests: parsed documents in, verdicts out, with the protocol's real tables.

import { parseAllDocuments } from 'yaml';
import { type AdmissionContext, admitClient, type ClientVerdict } from '../../src/admission/clients/admit-client.ts';
import { ClientSet, isServed } from '../../src/admission/clients/client-set.ts';
import {
  admitProviders,
  type ProviderObservation,
  type ProviderVerdict,
} from '../../src/admission/identity-providers/admit-providers.ts';
import type { ProviderSecret } from '../../src/admission/identity-providers/provider-secret.ts';
import type { KeyVerdict } from '../../src/admission/keys/admit-key.ts';
import { admitKeys } from '../../src/admission/keys/admit-keys.ts';
import type { Condition } from '../../src/admission/kinds/conditions.ts';
import type { SourceObject } from '../../src/admission/kinds/manifest.ts';
import { admitPolicies, type PolicyVerdict } from '../../src/admission/policies/admit-policies.ts';
import type {
  ReferencedConfigMap,
  ReferencedSecret,
  References,
  UnknownUid,
} from '../../src/admission/references/references.ts';
import type { ResourceVerdict } from '../../src/admission/resources/admit-resource.ts';
import { AdmittedResources } from '../../src/admission/resources/admitted-resources.ts';
import { CLIENT_AUTH_METHODS } from '../../src/oauth/client-auth/index.ts';
import { GRANT_TYPES } from '../../src/oauth/grants/index.ts';

type Fields = Readonly<Record<string, unknown>>;

const RELEASE_NAMESPACE = 'default';
const GENERATED_VERIFIER = new Uint8Array(32).fill(7);

/** What a test may set beside the documents. */
export interface WorldSettings
  extends Partial<
    Pick<
      AdmissionContext,
      'ownerOf' | 'issuer' | 'unknownFields' | 'defaultPolicy' | 'programmed' | 'supportedAuthMethods'
    >
  > {
  /** Whether the release namespace, which is `default`, is closed to clients and resources. */
  readonly releaseNamespaceReserved?: boolean;
  readonly verifiersOf?: References['verifiersOf'];
  /** The uids of ServiceAccounts by name; `uid-of-<name>` where none is given. */
  readonly accountUids?: Readonly<Record<string, string>>;
  readonly jwksOf?: References['jwksOf'];
  /** What a ServiceAccount or a ConfigMap that is in no document is. */
  readonly otherAccounts?: UnknownUid;
  readonly otherConfigMaps?: UnknownUid;
  /** What a Secret that is in no document is. */
  readonly otherSecrets?: Extract<ReturnType<References['secret']>, string> | undefined;
}

/** Every document of a YAML text as plain values. */
export function documentsOf(yaml: string): readonly unknown[] {
  return parseAllDocuments(yaml).map((document) => document.toJS() as unknown);
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}

/** A document as its source would hand it over: namespace `default`, a made-up uid, age by `creationTimestamp` or order. */
export function sourceObject(manifest: unknown, order = 0): SourceObject {
  const metadata = fieldsOf(fieldsOf(manifest).metadata);
  const { namespace, name, uid, creationTimestamp } = metadata;
  return {
    namespace: typeof namespace === 'string' ? namespace : 'default',
    name: typeof name === 'string' ? name : '',
    uid: typeof uid === 'string' ? uid : `uid-${order}`,
    createdAt: typeof creationTimestamp === 'string' ? Date.parse(creationTimestamp) : 8.64e15 + order,
    generation: 3,
    manifest,
  };
}

function referencesOf(documents: readonly unknown[], settings: WorldSettings): References {
  const find = (kind: string, namespace: string, name: string) =>
    documents.find((document) => {
      const source = sourceObject(document);
      return fieldsOf(document).kind === kind && source.namespace === namespace && source.name === name;
    });
  return {
    secret: (namespace, name) =>
      (find('Secret', namespace, name) as ReferencedSecret | undefined) ?? settings.otherSecrets,
    configMap: (namespace, name) =>
      (find('ConfigMap', namespace, name) as ReferencedConfigMap | undefined) ?? settings.otherConfigMaps,
    jwksOf: settings.jwksOf ?? (() => undefined),
    serviceAccountUid: (namespace, name) =>
      find('ServiceAccount', namespace, name) === undefined
        ? settings.otherAccounts
        : (settings.accountUids?.[name] ?? `uid-of-${name}`),
    namespaceLabels: (namespace) => ({
      ...(fieldsOf(fieldsOf(find('Namespace', 'default', namespace)).metadata).labels as
        | Record<string, string>
        | undefined),
      'kubernetes.io/metadata.name': namespace,
    }),
    verifiersOf: settings.verifiersOf ?? (() => [GENERATED_VERIFIER]),
  };
}

/** Every verdict on a set of documents. */
export interface WorldVerdicts {
  readonly clients: readonly ClientVerdict[];
  readonly policies: readonly PolicyVerdict[];
  readonly keys: readonly KeyVerdict[];
  readonly resources: readonly ResourceVerdict[];
  readonly providers: readonly ProviderVerdict[];
}

function objectsOf(documents: readonly unknown[], kind: string): readonly SourceObject[] {
  return documents.flatMap((document, order) =>
    fieldsOf(document).kind === kind ? [sourceObject(document, order)] : [],
  );
}

function admitPoliciesOf(documents: readonly unknown[], settings: WorldSettings): readonly PolicyVerdict[] {
  const unknownFields = settings.unknownFields ?? 'refuse';
  return admitPolicies({ className: 'default', unknownFields, policies: objectsOf(documents, 'ClientPolicy') });
}

/** What the clients among the documents are validated against. */
export function contextOf(documents: readonly unknown[], settings: WorldSettings = {}): AdmissionContext {
  return {
    issuer: settings.issuer,
    unknownFields: settings.unknownFields ?? 'refuse',
    reservedNamespace: settings.releaseNamespaceReserved ? RELEASE_NAMESPACE : undefined,
    policies: admitPoliciesOf(documents, settings).map(({ policy }) => policy),
    defaultPolicy: settings.defaultPolicy ?? 'Baseline',
    ownerOf: settings.ownerOf ?? ((identifier) => resourcesOf(documents, settings).ownerOf(identifier)),
    references: referencesOf(documents, settings),
    supportedGrantTypes: [...GRANT_TYPES.keys()],
    supportedAuthMethods: settings.supportedAuthMethods ?? [...CLIENT_AUTH_METHODS.keys()],
    programmed: settings.programmed ?? (() => ({ status: 'True', reason: 'Programmed', message: 'Served.' })),
  };
}

/** Admits all documents together, unknown fields refused unless the settings say otherwise. */
export async function admitAll(documents: readonly unknown[], settings: WorldSettings = {}): Promise<WorldVerdicts> {
  const context = contextOf(documents, settings);
  return {
    clients: clientsOf(documents, context).validateAll(),
    policies: admitPoliciesOf(documents, settings),
    keys: await admitKeys(objectsOf(documents, 'SigningKey'), { ...context, releaseNamespace: RELEASE_NAMESPACE }),
    resources: verdictsOf(resourcesOf(documents, settings)),
    providers: admitProvidersOf(documents, settings),
  };
}

function clientsOf(documents: readonly unknown[], context: AdmissionContext): ClientSet<SourceObject> {
  const { policies, references, programmed, ...options } = context;
  const { namespaceLabels } = references;
  const factsOf = (uid: string) => ({ ...references, programmed: programmed(uid) });
  const clients = new ClientSet<SourceObject>({ ...options, namespaceLabels, policies: () => policies, factsOf });
  for (const object of objectsOf(documents, 'OAuthClient')) if (isServed(object, 'default')) clients.put(object);
  return clients;
}

/** What every replica serves and reaches. */
const OBSERVED: ProviderObservation = {
  reachable: { status: 'True', reason: 'Reachable', message: 'Reached.' },
  programmed: { status: 'True', reason: 'Programmed', message: 'Served.' },
};

/** The verdicts on the IdentityProviders among the documents, in their order. */
export function admitProvidersOf(
  documents: readonly unknown[],
  settings: WorldSettings = {},
): readonly ProviderVerdict[] {
  const { unknownFields, references } = contextOf(documents, settings);
  return admitProviders(objectsOf(documents, 'IdentityProvider'), {
    unknownFields,
    releaseNamespace: RELEASE_NAMESPACE,
    secret: (namespace, name) => references.secret(namespace, name) as ProviderSecret,
    observed: () => OBSERVED,
  });
}

/** The ProtectedResources among the documents, with their verdicts. */
export function resourcesOf(
  documents: readonly unknown[],
  settings: WorldSettings = {},
): AdmittedResources<SourceObject> {
  const { policies, references, ...context } = contextOf(documents, settings);
  const resources = new AdmittedResources<SourceObject>({
    ...context,
    className: 'default',
    policies: () => policies,
    namespaceLabels: references.namespaceLabels,
  });
  for (const object of objectsOf(documents, 'ProtectedResource')) resources.put(object);
  resources.recompute();
  return resources;
}

const SERVED = { status: 'True', reason: 'Programmed', message: 'Served.' } as const;

/** Every verdict, in the order of the documents. */
export function verdictsOf(resources: AdmittedResources<SourceObject>): readonly ResourceVerdict[] {
  return [...resources.keys()].flatMap((key) => resources.verdict(key, SERVED) ?? []);
}

/** The verdict on the only client among the documents, by itself. */
export function admitOne(documents: readonly unknown[], settings: WorldSettings = {}): ClientVerdict {
  const [client, ...others] = objectsOf(documents, 'OAuthClient');
  if (client === undefined || others.length > 0) throw new Error('expected one client');
  return admitClient(client, contextOf(documents, settings));
}

/** An OAuthClient document in namespace `team`. */
export function clientDocument(spec: Fields, metadata: Fields = {}): Fields {
  return {
    apiVersion: 'grantry.dev/v1alpha1',
    kind: 'OAuthClient',
    metadata: { name: 'app', namespace: 'team', ...metadata },
    spec,
  };
}

/** A ProtectedResource document in namespace `team`. */
export function resourceDocument(spec: Fields, metadata: Fields = {}): Fields {
  return {
    apiVersion: 'grantry.dev/v1alpha1',
    kind: 'ProtectedResource',
    metadata: { name: 'notes', namespace: 'team', ...metadata },
    spec,
  };
}

/** A ClientPolicy document for namespace `team`. */
export function policyDocument(spec: Fields, name = 'team-policy'): Fields {
  const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': 'team' } };
  return {
    apiVersion: 'grantry.dev/v1alpha1',
    kind: 'ClientPolicy',
    metadata: { name },
    spec: { namespaceSelector, ...spec },
  };
}

/** The smallest client that needs no person. */
export const MACHINE = { grantTypes: ['client_credentials'], scopes: ['team/read'], defaultScopes: ['team/read'] };
/** The smallest client that signs people in. */
export const WEB = { redirectUris: ['https://app.example.com/callback'], scopes: ['team/read'] };

/** `Type=Status/Reason` of each condition. */
export function summaryOf(conditions: readonly Condition[]): readonly string[] {
  return conditions.map(({ type, status, reason }) => `${type}=${status}/${reason}`);
}
