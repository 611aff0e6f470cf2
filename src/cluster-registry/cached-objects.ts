// The form in which a token server caches the objects of which there may be a hundred thousand: plain objects of the
// fields that are read. Of a client that its own manifest refuses only the reasons and what its claims need: no other
// object can mend such a client, and a namespace may have any number of them.

import {
  type ClientVerifiers,
  readVerifierSecret,
  VERIFIER_SECRET_TYPE,
} from '../admission/client-secrets/client-verifier.ts';
import type { ReadManifest } from '../admission/clients/admit-client.ts';
import { ClientReader } from '../admission/clients/client-reader.ts';
import { clientFaults, type SupportedProtocol } from '../admission/clients/client-rules.ts';
import type { Fault } from '../admission/kinds/conditions.ts';
import { API_VERSION, classOf, readManifest } from '../admission/kinds/manifest.ts';
import { OAUTH_CLIENT, type OAuthClientSpec } from '../admission/kinds/oauth-client.ts';
import type { KubernetesObject, ObjectMeta } from '../kubernetes/objects/resources.ts';
import { GRANT_TYPES } from '../oauth/grants/index.ts';

/** An OAuthClient in the cache. */
export interface CachedClient extends KubernetesObject {
  /** With one fault of each reason, and without its message. Undefined for an OAuthClient of another class. */
  readonly read: ReadManifest | undefined;
}

/** An OAuthClient of the class. */
export type ReadableClient = CachedClient & { readonly read: ReadManifest };

/** Makes the cached form of the OAuthClients of one class. */
export function clientCache({
  className,
  issuer,
  supportedAuthMethods,
}: {
  readonly className: string;
  /** Of the install: no client may name it as audience. */
  readonly issuer: string;
  readonly supportedAuthMethods: readonly string[];
}): (object: KubernetesObject) => CachedClient {
  const reader = new ClientReader();
  const supported = { issuer, supportedGrantTypes: [...GRANT_TYPES.keys()], supportedAuthMethods };
  return (object) => {
    const { apiVersion, kind, spec } = object;
    const metadata = cachedMetadata(object.metadata);
    const { name, namespace, uid } = metadata;
    const isOwnClass = classOf(object) === className;
    const read = isOwnClass ? reader.read({ apiVersion, kind, metadata: { name, namespace, uid }, spec }) : undefined;
    return { apiVersion, kind, metadata, read: read && cachedRead(read, supported) };
  };
}

/** Whether the object is an OAuthClient of the class and not being deleted. */
export function isReadableClient(object: KubernetesObject): object is ReadableClient {
  return object.read !== undefined && object.metadata.deletionTimestamp === undefined;
}

/** A verifier Secret in the cache. */
export interface CachedVerifiers extends KubernetesObject {
  readonly type: typeof VERIFIER_SECRET_TYPE;
  /** With the uid of the client that they belong to. Undefined where they cannot be read. */
  readonly verifiers: (ClientVerifiers & { readonly uid: string }) | undefined;
}

/** The cached form of a Secret of the type for verifiers. */
export function cachedVerifiers(object: KubernetesObject): CachedVerifiers {
  const { apiVersion, kind, metadata } = object;
  return {
    apiVersion,
    kind,
    metadata: cachedMetadata(metadata),
    type: VERIFIER_SECRET_TYPE,
    verifiers: readVerifierSecret(object),
  };
}

/** Whether the object is a verifier Secret in its cached form. */
export function isCachedVerifiers(object: KubernetesObject): object is CachedVerifiers {
  return object.type === VERIFIER_SECRET_TYPE;
}

/** Without labels, annotations and the entries of field managers, which can be larger than the rest of an object. */
function cachedMetadata(metadata: ObjectMeta): ObjectMeta {
  const { name, namespace = '', uid, resourceVersion, creationTimestamp, generation = 1, deletionTimestamp } = metadata;
  const cached = { name, namespace, uid, resourceVersion, creationTimestamp, generation };
  return deletionTimestamp === undefined ? cached : { ...cached, deletionTimestamp };
}

const NONE: readonly Fault[] = [];

/** A manifest as it is; of one that is refused only the claims and the reasons. */
function cachedRead({ manifest, faults }: ReadManifest, supported: SupportedProtocol): ReadManifest {
  if (manifest === undefined) return { manifest, faults: reasonsOf(faults) };
  const ruleFaults = reasonsOf(clientFaults(manifest.spec, supported));
  if (ruleFaults.length === 0) return { manifest, faults: NONE, ruleFaults };
  return { manifest: { spec: claimsOf(manifest.spec) }, faults: NONE, ruleFaults };
}

const DEFAULTS = readManifest(OAUTH_CLIENT.ignore, {
  apiVersion: API_VERSION,
  kind: 'OAuthClient',
  metadata: { name: 'any' },
  spec: { auth: { clientSecret: {} } },
}).manifest?.spec;

/**
 * The fields that decide which id and which Secret a refused client claims. Whether it may have an id of its own is a
 * matter of the policies, which read all fields but the details of `auth`.
 */
function claimsOf(spec: OAuthClientSpec): OAuthClientSpec {
  if (DEFAULTS === undefined) return spec;
  const { clientId, suspended, auth } = spec;
  const { clientSecret, ...noSecret } = DEFAULTS.auth;
  const secret =
    auth.clientSecret && clientSecret
      ? { ...clientSecret, source: auth.clientSecret.source, secretName: auth.clientSecret.secretName }
      : undefined;
  return {
    ...(clientId === undefined ? DEFAULTS : spec),
    clientId,
    suspended,
    auth: { ...noSecret, method: auth.method, ...(secret !== undefined && { clientSecret: secret }) },
  };
}

/**
 * One for each reason: there may be any number of refused clients. No policy has a fault at this path, which would then
 * be left out (admit-client.ts).
 */
const BARE = new Map<string, Fault>();

function reasonsOf(faults: readonly Fault[]): readonly Fault[] {
  if (faults.length === 0) return NONE;
  return [...new Set(faults.map(({ reason }) => reason))].map((reason) => {
    const known = BARE.get(reason) ?? { reason, path: ['spec'], message: '' };
    BARE.set(reason, known);
    return known;
  });
}
