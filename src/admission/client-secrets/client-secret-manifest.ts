// The Secret of a client whose secret is generated: its name, its owner and its content. Pure functions, so that `dev`
// (in files) and the controller (in the cluster) write the same Secret. secret-template.ts validates the template;
// credentials.ts decides which clients get a secret.

import { SECRET_METHODS } from '../../oauth/client-auth/index.ts';
import type { SourceObject } from '../kinds/manifest.ts';
import type { OAuthClientManifest, OAuthClientSpec } from '../kinds/oauth-client.ts';
import { DEFAULT_SECRET_KEYS } from '../kinds/secret-presets.ts';

/** The minimum length of a client secret, generated or existing. */
export const MINIMUM_SECRET_BYTES = 32;

/** The labels of a generated Secret: the name and the uid of the OAuthClient it belongs to. */
export const CLIENT_LABEL = 'grantry.dev/client';
export const CLIENT_UID_LABEL = 'grantry.dev/client-uid';

/** The content of a Secret that does not come from the manifest. */
export interface SecretFacts {
  readonly clientId: string;
  readonly clientSecret: string;
  /** The previous secret, while it is still accepted; written where the manifest names a key for it. */
  readonly previousClientSecret?: string | undefined;
  /** The next secret, while a rotation is pending; written under {@link stagedKey}. */
  readonly nextClientSecret?: string | undefined;
  readonly issuer: string;
}

/** What the variables of a literal stand for. */
interface VariableFacts extends SecretFacts {
  readonly scopes: readonly string[];
}

/** The variables `${…}` of `extraData`. */
export const SECRET_VARIABLES: ReadonlyMap<string, (facts: VariableFacts) => string> = new Map([
  ['CLIENT_ID', ({ clientId }: VariableFacts) => clientId],
  ['CLIENT_SECRET', ({ clientSecret }: VariableFacts) => clientSecret],
  ['ISSUER', ({ issuer }: VariableFacts) => issuer],
  ['AUTHORIZATION_ENDPOINT', ({ issuer }: VariableFacts) => `${issuer}/authorize`],
  ['TOKEN_ENDPOINT', ({ issuer }: VariableFacts) => `${issuer}/token`],
  ['USERINFO_ENDPOINT', ({ issuer }: VariableFacts) => `${issuer}/userinfo`],
  ['END_SESSION_ENDPOINT', ({ issuer }: VariableFacts) => `${issuer}/logout`],
  ['JWKS_URI', ({ issuer }: VariableFacts) => `${issuer}/.well-known/jwks.json`],
  ['SCOPES', ({ scopes }: VariableFacts) => scopesText(scopes)],
]);

/** What `${SCOPES}` stands for: the scopes of a client as a request has them (RFC 6749 §3.3). */
export function scopesText(scopes: readonly string[]): string {
  return scopes.join(' ');
}

/** Whether the client authenticates with a secret that is generated for it. */
export function hasGeneratedSecret({ auth }: OAuthClientSpec): boolean {
  return SECRET_METHODS.includes(auth.method) && auth.clientSecret?.source !== 'Existing';
}

/** The name of the Secret that holds a client's id and secret. */
export function clientSecretName(name: string, { auth }: OAuthClientSpec): string {
  return auth.clientSecret?.secretName ?? defaultSecretName(name);
}

const DEFAULT_SUFFIX = '-oauth';

/** That name where the manifest gives none. @param name of the OAuthClient */
export function defaultSecretName(name: string): string {
  return `${name}${DEFAULT_SUFFIX}`;
}

/** The name of the OAuthClient whose Secret has this name by default; undefined for a name that is no default. */
export function clientOfDefault(secretName: string): string | undefined {
  return secretName.endsWith(DEFAULT_SUFFIX) ? secretName.slice(0, -DEFAULT_SUFFIX.length) : undefined;
}

/** The keys of that Secret by their content. */
export function clientSecretKeys({ auth }: OAuthClientSpec): {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly issuer: string;
  readonly previousClientSecret?: string | undefined;
} {
  return auth.clientSecret?.keys ?? DEFAULT_SECRET_KEYS;
}

/** The keys that are reserved for secrets of pending rotations. */
export const STAGED_SUFFIX = '.next';

/** The key of the next secret while a rotation is pending. @param key of the client secret */
export function stagedKey(key: string): string {
  return `${key}${STAGED_SUFFIX}`;
}

/** Whether a Secret was written for this client. */
export function isSecretOf(uid: string, { metadata }: { readonly metadata?: unknown }): boolean {
  const { labels } = (metadata ?? {}) as { readonly labels?: unknown };
  const owner = typeof labels === 'object' && labels !== null && (labels as Record<string, unknown>)[CLIENT_UID_LABEL];
  return owner === uid;
}

/** A Secret in the form in which it is applied. */
export interface ClientSecretManifest {
  readonly apiVersion: 'v1';
  readonly kind: 'Secret';
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>> | undefined;
  };
  readonly type: 'Opaque';
  readonly stringData: Readonly<Record<string, string>>;
}

/**
 * The Secret of a client whose secret was generated.
 * @param randomValues one for each of the manifest's `randomKeys`: generated once and kept over rotations
 */
export function clientSecretManifest({
  object,
  manifest: { spec },
  facts,
  randomValues,
}: {
  readonly object: SourceObject;
  readonly manifest: OAuthClientManifest;
  readonly facts: SecretFacts;
  readonly randomValues: Readonly<Record<string, string>>;
}): ClientSecretManifest {
  const { secretTemplate, extraData = {} } = spec.auth.clientSecret ?? {};
  const keys = clientSecretKeys(spec);
  const variables = { ...facts, scopes: spec.scopes };
  const literals = Object.entries(extraData).map(([key, literal]) => [key, filled(literal, variables)]);
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: clientSecretName(object.name, spec),
      namespace: object.namespace,
      labels: { ...secretTemplate?.labels, [CLIENT_LABEL]: object.name, [CLIENT_UID_LABEL]: object.uid },
      ...(Object.keys(secretTemplate?.annotations ?? {}).length > 0 && { annotations: secretTemplate?.annotations }),
    },
    type: 'Opaque',
    stringData: {
      [keys.clientId]: facts.clientId,
      [keys.clientSecret]: facts.clientSecret,
      [keys.issuer]: facts.issuer,
      ...(keys.previousClientSecret !== undefined &&
        facts.previousClientSecret !== undefined && { [keys.previousClientSecret]: facts.previousClientSecret }),
      ...(facts.nextClientSecret !== undefined && { [stagedKey(keys.clientSecret)]: facts.nextClientSecret }),
      ...Object.fromEntries(literals),
      ...randomValues,
    },
  };
}

function filled(literal: string, facts: VariableFacts): string {
  return literal.replaceAll(/\$\{([A-Z_]+)\}/g, (whole, name: string) => SECRET_VARIABLES.get(name)?.(facts) ?? whole);
}
