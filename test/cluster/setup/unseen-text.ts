// Characters that cannot be seen, or that YAML does not take as they are, and the fields of an OAuthClient whose text comes
// back in conditions, Events or Secrets.

/** By name. */
export const UNSEEN: Readonly<Record<string, string>> = {
  del: '\u007f',
  c1: '\u009b',
  'next-line': '\u0085',
  noncharacter: '\ufffe',
  'noncharacter-of-bmp': '\ufdd0',
  'noncharacter-beyond-bmp': '\u{1fffe}',
  'lone-surrogate': '\ud800',
  bidi: '\u202e',
  'line-separator': '\u2028',
  'byte-order-mark': '\ufeff',
  emoji: '\u{1f600}',
};

const code = (odd: string) => ({
  grantTypes: ['authorization_code'],
  redirectUris: [`https://app.example/${odd}`],
});
/** The part of a spec that sets labels and annotations of the Secret. */
export const secretTemplate = (template: object) => ({ auth: { clientSecret: { secretTemplate: template } } });

/** The fields that a condition quotes, that status repeats, or that a Secret of grantry gets. */
export const FIELDS: Readonly<Record<string, (odd: string) => { readonly spec?: object; readonly metadata?: object }>> =
  {
    scope: (odd) => ({ spec: { scopes: [odd] } }),
    'default-scope': (odd) => ({ spec: { defaultScopes: [odd] } }),
    grant: (odd) => ({ spec: { grantTypes: ['client_credentials', odd] } }),
    method: (odd) => ({ spec: { auth: { method: odd } } }),
    preset: (odd) => ({ spec: { auth: { clientSecret: { preset: odd } } } }),
    redirect: (odd) => ({ spec: code(odd) }),
    'post-logout-redirect': (odd) => ({ spec: { postLogoutRedirectUris: [odd] } }),
    audience: (odd) => ({ spec: { audiences: [odd], defaultAudience: odd } }),
    'audience-of-an-api': (odd) => ({ spec: { resourceServer: { audiences: [odd] } } }),
    'key-of-a-literal': (odd) => ({ spec: { auth: { clientSecret: { extraData: { [odd]: 'x' } } } } }),
    'key-of-a-label': (odd) => ({ spec: secretTemplate({ labels: { [odd]: 'x' } }) }),
    'rotation-request': (odd) => ({ metadata: { annotations: { 'grantry.dev/rotate-requested-at': odd } } }),
  };
