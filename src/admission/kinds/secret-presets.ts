// The Secret layout that well-known consumers expect of a client's id and secret: one table, looked up when a manifest
// is read. Settings of the manifest itself take precedence.

/** The keys of a client's Secret by their content. */
interface SecretKeys {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly issuer: string;
}

/** The Secret layout of one consumer. */
interface SecretPreset {
  readonly keys: SecretKeys;
  readonly extraData: Readonly<Record<string, string>>;
  readonly randomKeys: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
}

/** The keys of a client's Secret, unless the manifest or a preset renames them. */
export const DEFAULT_SECRET_KEYS: SecretKeys = {
  clientId: 'client-id',
  clientSecret: 'client-secret',
  issuer: 'issuer-url',
};

const NONE = preset({});

const PRESETS: ReadonlyMap<string, SecretPreset> = new Map([
  ['none', NONE],
  // `config.existingSecret` of its chart. The cookie secret is 16, 24 or 32 bytes, which it reads from base64url as
  // well.
  ['oauth2-proxy', preset({ randomKeys: ['cookie-secret'] })],
  // Argo CD resolves `$secret:key` in its configuration only from Secrets with this label.
  ['argocd', preset({ labels: { 'app.kubernetes.io/part-of': 'argocd' } })],
  // Its whole environment (`envFromSecret` of its chart): each setting of grafana.ini has a variable.
  [
    'grafana',
    preset({
      keys: {
        clientId: 'GF_AUTH_GENERIC_OAUTH_CLIENT_ID',
        clientSecret: 'GF_AUTH_GENERIC_OAUTH_CLIENT_SECRET',
        issuer: 'OAUTH_ISSUER',
      },
      extraData: {
        GF_AUTH_GENERIC_OAUTH_AUTH_URL: variable('AUTHORIZATION_ENDPOINT'),
        GF_AUTH_GENERIC_OAUTH_TOKEN_URL: variable('TOKEN_ENDPOINT'),
        GF_AUTH_GENERIC_OAUTH_API_URL: variable('USERINFO_ENDPOINT'),
        GF_AUTH_GENERIC_OAUTH_SCOPES: variable('SCOPES'),
        // Off by default, and the authorization endpoint requires PKCE.
        GF_AUTH_GENERIC_OAUTH_USE_PKCE: 'true',
      },
    }),
  ],
  // `clientIDRef` and `clientSecret` of a SecurityPolicy name a Secret, and these keys are fixed.
  ['envoy-gateway', preset({ keys: { clientId: 'client-id', clientSecret: 'client-secret', issuer: 'issuer-url' } })],
  // A binding of type oauth2 (servicebinding.io) as Spring Cloud Bindings reads it, and a tree for `configtree:`.
  [
    'spring',
    preset({
      keys: { clientId: 'client-id', clientSecret: 'client-secret', issuer: 'issuer-uri' },
      extraData: { type: 'oauth2', provider: 'grantry' },
    }),
  ],
]);

function preset(said: Partial<SecretPreset>): SecretPreset {
  return { keys: DEFAULT_SECRET_KEYS, extraData: {}, randomKeys: [], labels: {}, ...said };
}

/** A variable in a literal (client-secret-manifest.ts). */
function variable(name: string): string {
  return `\${${name}}`;
}

/** The names of all presets, `none` included. */
export const PRESET_NAMES: readonly string[] = [...PRESETS.keys()];

/** The fields of `auth.clientSecret` that a preset may set. */
interface SecretSettings {
  readonly preset: string;
  readonly keys: { readonly [Name in keyof SecretKeys]?: string | undefined } & {
    readonly previousClientSecret?: string | undefined;
  };
  readonly extraData: Readonly<Record<string, string>>;
  readonly randomKeys: readonly string[];
  readonly secretTemplate: {
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations: Readonly<Record<string, string>>;
  };
}

/**
 * The settings merged with those of their preset, which sets no key that they use themselves. An unknown preset adds
 * nothing; client-rules.ts refuses it.
 */
export function withPreset<Settings extends SecretSettings>(settings: Settings) {
  const { keys, extraData, randomKeys, labels } = PRESETS.get(settings.preset) ?? NONE;
  const { clientId, clientSecret, issuer, previousClientSecret } = settings.keys;
  const named = {
    clientId: clientId ?? keys.clientId,
    clientSecret: clientSecret ?? keys.clientSecret,
    issuer: issuer ?? keys.issuer,
    ...(previousClientSecret !== undefined && { previousClientSecret }),
  };
  const taken = new Set([...Object.values(named), ...settings.randomKeys, ...Object.keys(settings.extraData)]);
  const isFree = (key: string) => !taken.has(key);
  const literals = Object.entries(extraData).filter(([key]) => isFree(key));
  return {
    ...settings,
    keys: named,
    extraData: { ...Object.fromEntries(literals), ...settings.extraData },
    randomKeys: [...randomKeys.filter(isFree), ...settings.randomKeys],
    secretTemplate: { ...settings.secretTemplate, labels: { ...labels, ...settings.secretTemplate.labels } },
  };
}
