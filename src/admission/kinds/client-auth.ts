// `spec.auth` of an OAuthClient: the method, and a block for each family of methods. Whether block and method fit each other,
// admission/clients/ decides.

import { z } from 'zod';
import {
  cel,
  dataKey,
  duration,
  fieldsOf,
  listOf,
  type MakeObject,
  mapListOf,
  mapOf,
  objectName,
  secretTemplate,
  setOf,
  text,
  within,
} from './manifest.ts';
import { withPreset } from './secret-presets.ts';
import { JWKS_BYTES_MAX, jsonBytes } from './spec-size.ts';

const METHODS = [
  ...['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'tls_client_auth', 'self_signed_tls_client_auth'],
  ...['kubernetes_service_account', 'none'],
];

/** That a block stands beside one of its methods, or one that is unknown; the first of {@link METHODS} is the default. */
function countsWith(block: string, methods: readonly string[], isUnset = `!has(self.${block})`) {
  const others = METHODS.filter((method) => !methods.includes(method)).map((method) => `'${method}'`);
  const isOther = `self.method in [${others.join(', ')}]`;
  const isDefault = methods.includes('client_secret_basic');
  return cel(
    `${isUnset} || ${isDefault ? `!has(self.method) || !(${isOther})` : `(has(self.method) && !(${isOther}))`}`,
    `${block} counts only with the method${methods.length > 1 ? 's' : ''} ${methods.join(' and ')}`,
  );
}

/** At most one of some fields. */
function onlyOneOf(...fields: readonly string[]) {
  const counted = fields.map((field) => `(has(self.${field}) ? 1 : 0)`).join(' + ');
  const named = `${fields.slice(0, -1).join(', ')} and ${fields.at(-1)}`;
  return cel(`${counted} <= 1`, `only one of ${named} can be given`);
}

const secretKeys = (object: MakeObject) =>
  object({
    clientId: dataKey()
      .optional()
      .describe('Where the generated Secret has the client id. Unset, client-id or what the preset says.'),
    clientSecret: dataKey()
      .optional()
      .describe(
        'Where the secret is, also in an existing Secret: one line of at least 32 bytes. Unset, client-secret or what the preset says.',
      ),
    issuer: dataKey()
      .optional()
      .describe('Where the generated Secret has the address of the issuer. Unset, issuer-url or what the preset says.'),
    previousClientSecret: dataKey()
      .optional()
      .describe('The secret before the present one. With Existing, it is accepted as well while you rotate.'),
  });

const rotation = (object: MakeObject) =>
  object({
    interval: duration()
      .meta(within({ least: '24h' }))
      .optional()
      .describe(
        'How often the secret is replaced, 24h at least. Unset, only when it is asked for by the annotation grantry.dev/rotate-requested-at.',
      ),
    gracePeriod: duration()
      .prefault('24h')
      .describe(
        'How long the old secret works beside the new one. Of one client at most 32 secrets work at a time, the newest.',
      ),
  });

const clientSecret = (object: MakeObject) =>
  object({
    source: z
      .enum(['Generate', 'Existing'])
      .default('Generate')
      .describe(
        'Who makes the secret. Generate: grantry does, and writes it into the Secret. Existing: you do; a Secret that is missing is waited for, never invented.',
      ),
    secretName: objectName()
      .optional()
      .describe(
        "The Secret with the id and the secret, in the client's own namespace. Unset, it is the client's name with -oauth behind it.",
      ),
    keys: secretKeys(object).prefault({}).describe('Where the Secret has what.'),
    extraData: mapOf(text(4096), 32)
      .default({})
      .describe(
        `More keys of the generated Secret. \${CLIENT_ID}, \${CLIENT_SECRET}, \${ISSUER}, \${AUTHORIZATION_ENDPOINT}, \${TOKEN_ENDPOINT}, \${USERINFO_ENDPOINT}, \${END_SESSION_ENDPOINT}, \${JWKS_URI} and \${SCOPES} are filled in; any other \${...} is a fault. All values together have at most 64 KiB, each variable counted as 256 bytes, and the scopes as what is more.`,
      ),
    secretTemplate: secretTemplate(object).describe(
      'Labels and annotations for the generated Secret, without a prefix or under app.kubernetes.io/. A policy may permit other prefixes (allow.secretMetadata), but not those of Kubernetes, Helm, Argo and grantry.',
    ),
    deletionPolicy: z
      .enum(['Delete', 'Retain'])
      .default('Delete')
      .describe('What becomes of the generated Secret when the client is deleted.'),
    preset: text(63)
      .default('none')
      .describe(
        'A consumer whose expectations the Secret is to meet: none, oauth2-proxy, argocd, grafana, envoy-gateway or spring; any other is not accepted. It names keys, literals, random keys and labels; what is given beside it wins.',
      ),
    randomKeys: setOf(dataKey(), 8)
      .default([])
      .describe(
        'Keys of the generated Secret with 256 random bits each. They are filled once and kept when the secret rotates.',
      ),
    rotation: rotation(object)
      .prefault({})
      .describe('When the generated secret is replaced. grantry dev makes it once.'),
  })
    .transform((settings) => withPreset(settings))
    .optional()
    .describe('The secret of a client whose method is client_secret_basic or client_secret_post.');

/** RFC 7518 §6.2.2, §6.3.2 and §6.4.1. */
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];
const LEAKED =
  'is a private member, and a key in a manifest is no secret any more: replace the key by a new one, and give its public members only';

// Public members only: a private key in a manifest would be in the Git history of every checkout. So it is refused even
// where unknown fields are ignored.
function jsonWebKey(object: MakeObject) {
  const member = (description: string, max = 1024) => text(max).optional().describe(description);
  const publicKey = object({
    kty: text(16).describe('The family of the key, such as EC, RSA or OKP.'),
    use: member('What the key is for, such as sig.'),
    key_ops: setOf(text(32), 8).optional().describe('The operations that the key is for, such as verify.'),
    alg: member('The algorithm that the key is for, such as ES256.'),
    kid: member('The name of the key.'),
    crv: member('The curve of an EC or OKP key, such as P-256.'),
    x: member('The x coordinate of an EC key or the public OKP key.'),
    y: member('The y coordinate of an EC key.'),
    n: member('The modulus of an RSA key.', 2048),
    e: member('The exponent of an RSA key.'),
    x5c: setOf(text(8192), 8)
      .optional()
      .describe('The certificate chain of the key, each certificate in base64 of DER.'),
  }).describe('One public key as a JWK (RFC 7517).');
  return z.preprocess((value, { addIssue }) => {
    const leaked = PRIVATE_MEMBERS.find((name) => Object.hasOwn(fieldsOf(value), name));
    if (leaked === undefined) return value;
    addIssue({ code: 'custom', path: [leaked], message: LEAKED });
    return z.NEVER;
  }, publicKey);
}

const jsonWebKeySet = (object: MakeObject) =>
  object({
    keys: listOf(jsonWebKey(object), 16).describe(
      'The keys. There is no member for a private one; a manifest is no place for it.',
    ),
  })
    .refine((jwks) => jsonBytes(jwks) <= JWKS_BYTES_MAX, {
      error: `is larger than ${JWKS_BYTES_MAX / 1024} KiB as JSON`,
    })
    .optional();

const jwksConfigMapRef = (object: MakeObject) =>
  object({
    name: objectName().describe('The name of the ConfigMap.'),
    key: dataKey().default('jwks.json').describe('Where the ConfigMap has the keys.'),
  });

const privateKeyJwt = (object: MakeObject) =>
  object({
    jwks: jsonWebKeySet(object).describe('The keys themselves. At most 32 KiB as JSON.'),
    jwksUri: text(512)
      .optional()
      .describe(
        'Where the keys are published: https, the host by its name. The policy of the namespace must permit the host (allow.jwksHosts).',
      ),
    jwksConfigMapRef: jwksConfigMapRef(object)
      .optional()
      .describe("A ConfigMap with the keys, in the client's own namespace."),
    signingAlgorithms: setOf(text(16), 8)
      .default([])
      .describe(
        'The algorithms that are accepted, of ES256, ES384, PS256, RS256 and EdDSA. Empty: those that the keys fit, without RS256.',
      ),
    acceptTokenEndpointAudience: z
      .boolean()
      .default(false)
      .describe('Whether an assertion may name the token endpoint as its audience in place of the issuer.'),
  })
    .meta(onlyOneOf('jwks', 'jwksUri', 'jwksConfigMapRef'))
    .optional()
    .describe('The keys of a client that signs assertions (RFC 7523), from exactly one source.');

const tls = (object: MakeObject) =>
  object({
    subjectDn: text(512)
      .optional()
      .describe(
        'The whole subject of the certificate, last part first (RFC 4514), as openssl x509 -noout -subject -nameopt RFC2253 prints it.',
      ),
    sanDns: text(253)
      .optional()
      .describe('A DNS name among its subject alternative names; upper and lower case are the same.'),
    sanUri: text(512).optional().describe('A URI among its subject alternative names, letter by letter.'),
    sanIp: text(45).optional().describe('An IP address among its subject alternative names.'),
    sanEmail: text(254).optional().describe('An e-mail address among its subject alternative names, letter by letter.'),
    jwks: jsonWebKeySet(object).describe(
      'The keys of self-signed certificates, each by itself or, with x5c, by that certificate alone. At most 32 KiB as JSON.',
    ),
  })
    .meta(onlyOneOf('subjectDn', 'sanDns', 'sanUri', 'sanIp', 'sanEmail'))
    .optional()
    .describe(
      'Which certificates are those of a client (RFC 8705): with tls_client_auth exactly one name of a certificate that a CA of the server has issued, with self_signed_tls_client_auth jwks. Needs mutual TLS, which the administrator turns on.',
    );

const serviceAccount = (object: MakeObject) =>
  object({ name: objectName().describe('The name of the ServiceAccount.') }).describe('One ServiceAccount.');

/** `spec.auth`. */
export const auth = (object: MakeObject) =>
  object({
    method: text(64)
      .default('client_secret_basic')
      .describe(
        'client_secret_basic, client_secret_post, private_key_jwt, kubernetes_service_account, or none for a public client; with mutual TLS, which the administrator turns on, tls_client_auth and self_signed_tls_client_auth.',
      ),
    clientSecret: clientSecret(object),
    privateKeyJwt: privateKeyJwt(object),
    tls: tls(object),
    serviceAccounts: mapListOf('name', serviceAccount(object), 16)
      .default([])
      .describe(
        'The ServiceAccounts that are this client, in its own namespace: the token of one, with the issuer as its only audience, authenticates it. Not the account default. One that does not exist is named in status; the others work.',
      ),
  })
    .meta({
      ...countsWith('clientSecret', ['client_secret_basic', 'client_secret_post']),
      ...countsWith('privateKeyJwt', ['private_key_jwt']),
      ...countsWith('tls', ['tls_client_auth', 'self_signed_tls_client_auth']),
      ...countsWith(
        'serviceAccounts',
        ['kubernetes_service_account'],
        '!has(self.serviceAccounts) || size(self.serviceAccounts) == 0',
      ),
    })
    .prefault({})
    .describe('How the client proves who it is. A block that belongs to another method than the one named is a fault.');
