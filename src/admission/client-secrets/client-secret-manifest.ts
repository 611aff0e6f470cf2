// The Secret that a client's generated secret stands in: its name, its owner, and what is written into it. Pure, so that
// whoever keeps secrets (`dev` in files, a controller in the cluster) writes the very same. Judging the template is
// secret-template.ts; who may have a secret is credentials.ts.

import { SECRET_METHODS } from '../../oauth/client-auth/index.ts';
import type { SourceObject } from '../kinds/manifest.ts';
import type { OAuthClientManifest, OAuthClientSpec } from '../kinds/oauth-client.ts';
import { DEFAULT_SECRET_KEYS } from '../kinds/secret-presets.ts';

/** The least a client secret may have, whoever made it. */
export const MINIMUM_SECRET_BYTES = 32;

/** The labels of a generated Secret: the name and the uid of the OAuthClient it belongs to. */
export const CLIENT_LABEL = 'grantry.dev/client';
export const CLIENT_UID_LABEL = 'grantry.dev/client-uid';

/** What goes into a Secret beside what the manifest says. */
export interface SecretFacts {
  readonly clientId: string;
  readonly clientSecret: string;
  /** The one before, while it still works; written where the manifest names a key for it. */
  readonly previousClientSecret?: string | undefined;
  readonly issuer: string;
}

/** What `${…}` may stand for in `extraData`. */
export const SECRET_VARIABLES: ReadonlyMap<string, (facts: SecretFacts) => string> = new Map([
  ['CLIENT_ID', ({ clientId }: SecretFacts) => clientId],
  ['CLIENT_SECRET', ({ clientSecret }: SecretFacts) => clientSecret],
  ['ISSUER', ({ issuer }: SecretFacts) => issuer],
  ['TOKEN_ENDPOINT', ({ issuer }: SecretFacts) => `${issuer}/token`],
  ['JWKS_URI', ({ issuer }: SecretFacts) => `${issuer}/.well-known/jwks.json`],
]);

/** Whether the client proves itself with a secret that is made for it. */
export function hasGeneratedSecret({ auth }: OAuthClientSpec): boolean {
  return SECRET_METHODS.includes(auth.method) && auth.clientSecret?.source !== 'Existing';
}

/** The name of the Secret a client's id and secret stand in. */
export function clientSecretName(name: string, { auth }: OAuthClientSpec): string {
  return auth.clientSecret?.secretName ?? defaultSecretName(name);
}

const DEFAULT_SUFFIX = '-oauth';

/** That name where the manifest gives none. @param name of the OAuthClient */
export function defaultSecretName(name: string): string {
  return `${name}${DEFAULT_SUFFIX}`;
}

/** The OAuthClient of whom a Secret has the default name; undefined for a name that is nobody's default. */
export function clientOfDefault(secretName: string): string | undefined {
  return secretName.endsWith(DEFAULT_SUFFIX) ? secretName.slice(0, -DEFAULT_SUFFIX.length) : undefined;
}

/** The keys of that Secret by what stands under them. */
export function clientSecretKeys({ auth }: OAuthClientSpec): {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly issuer: string;
  readonly previousClientSecret?: string | undefined;
} {
  return auth.clientSecret?.keys ?? DEFAULT_SECRET_KEYS;
}

/** Whether a Secret is the one that was written for this client. */
export function isSecretOf(uid: string, { metadata }: { readonly metadata?: unknown }): boolean {
  const { labels } = (metadata ?? {}) as { readonly labels?: unknown };
  const owner = typeof labels === 'object' && labels !== null && (labels as Record<string, unknown>)[CLIENT_UID_LABEL];
  return owner === uid;
}

/** A Secret as it is applied. */
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
 * @param randomValues one for each of the manifest's `randomKeys`: made once and kept over rotations
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
  const literals = Object.entries(extraData).map(([key, literal]) => [key, filled(literal, facts)]);
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
      ...Object.fromEntries(literals),
      ...randomValues,
    },
  };
}

function filled(literal: string, facts: SecretFacts): string {
  return literal.replaceAll(/\$\{([A-Z_]+)\}/g, (whole, name: string) => SECRET_VARIABLES.get(name)?.(facts) ?? whole);
}
