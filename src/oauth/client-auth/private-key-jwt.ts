// private_key_jwt: the client signs a short-lived assertion with a key of its own (RFC 7523 §2.2, §3; OpenID Connect Core §9).
// The signature is verified before the claims: the reason of a refused claim is then known to be about the client's own
// assertion. Each assertion can be used once.

import type { AssertionSettings, Client } from '../registry/client.ts';
import type { VerificationKey } from '../values/jwk.ts';
import type { JsonObject, Jwt } from '../values/jws.ts';
import { verifyInVain, verifyWithKeys } from '../values/key-selection.ts';
import { SIGNING_ALGORITHM_NAMES } from '../values/signature.ts';
import { ASSERTION_PARAMETERS, presentedAssertion } from './assertion.ts';
import type { ClientAuthMethod, Verification, VerificationContext } from './method.ts';

const LIFETIME_SECONDS_MAX = 300;
/** How far the clocks of a client and of a replica may be apart. */
const SKEW_SECONDS = 60;
/** The marks are kept by the clock of Redis, which may be so far ahead (docs/guides/redis.md). */
const STORE_SKEW_SECONDS = 2;
const ID_CHARACTERS_MAX = 256;

/** RFC 7519 §5.1, RFC 7523bis; another type belongs to another kind of token (RFC 8725 §3.11). */
const TYPES: readonly unknown[] = ['jwt', 'client-authentication+jwt'];

/** Why an assertion that a key of the client has signed is refused: a slug for logs, metrics, tests and status. */
export const ASSERTION_REFUSALS = [
  'assertion_claims_malformed',
  'assertion_audience_mismatch',
  'assertion_expiry_missing',
  'assertion_expired',
  'assertion_too_old',
  'assertion_lifetime_too_long',
  'assertion_not_yet_valid',
  'assertion_jti_missing',
  'assertion_jti_invalid',
] as const;

type AssertionRefusal = (typeof ASSERTION_REFUSALS)[number];

export const privateKeyJwt: ClientAuthMethod = {
  confidential: true,
  implicit: false,
  usesHeader: false,
  usesSecret: false,
  usesCertificate: false,
  signingAlgorithms: SIGNING_ALGORITHM_NAMES,
  parameters: ASSERTION_PARAMETERS,
  attempt({ parameters }) {
    const assertion = presentedAssertion(parameters);
    if (assertion === undefined || typeof assertion === 'string') return undefined;
    const { jwt, issuer, subject } = assertion;
    if (issuer !== subject) return undefined;
    return { clientId: subject, verify: (client, context) => verify(jwt, client, context) };
  },
};

function verify(
  jwt: Jwt,
  client: Client | undefined,
  context: VerificationContext,
): Verification | Promise<Verification> {
  if (!TYPES.includes(mediaType(jwt.header.typ))) return { ok: false, reason: 'assertion_type_mismatch' };
  if (client?.assertion === undefined) {
    verifyInVain(jwt);
    return { ok: false, reason: 'key_unknown' };
  }
  const { uid, assertion: settings } = client;
  const verifyBy = (keys: readonly VerificationKey[]) => verifyAssertion(jwt, { uid, settings, keys }, context);
  if (!('jwksUri' in settings.keys)) return verifyBy(settings.keys);
  return context.keySets.keysAt(client, settings.keys.jwksUri, jwt.header.kid).then(verifyBy);
}

/** A `typ` without the prefix that may be left out, in lower case (RFC 7515 §4.1.9); as it is where it is no text. */
function mediaType(typ: unknown): unknown {
  if (typ === undefined) return 'jwt';
  return typeof typ === 'string' ? typ.toLowerCase().replace(/^application\//, '') : typ;
}

interface Signer {
  /** Of the client. */
  readonly uid: string;
  readonly settings: AssertionSettings;
  readonly keys: readonly VerificationKey[];
}

function verifyAssertion(jwt: Jwt, { uid, settings, keys }: Signer, context: VerificationContext): Verification {
  const signer = verifyWithKeys(jwt, { keys, algorithms: settings.algorithms });
  if (typeof signer === 'string') return { ok: false, reason: signer };
  const { aud, jti } = jwt.claims;
  const refusal = audienceRefusal(aud, settings, context) ?? idRefusal(jti);
  if (refusal !== undefined) return { ok: false, reason: refusal };
  const lifetime = lifetimeOf(jwt.claims, context.clock.now() / 1000);
  if (typeof lifetime === 'string') return { ok: false, reason: lifetime };
  return {
    ok: true,
    mark: { kind: 'client_assertion', value: `${uid} ${jti}`, ...lifetime },
    isLegacyAudience: aud !== context.issuer,
  };
}

/** RFC 7523 §3 item 3, as narrowed by RFC 7523bis: the issuer, and nothing beside it. */
function audienceRefusal(
  aud: unknown,
  { acceptTokenEndpointAudience }: AssertionSettings,
  { issuer, tokenEndpoint }: VerificationContext,
): AssertionRefusal | undefined {
  if (aud === issuer) return undefined;
  const only: unknown = Array.isArray(aud) && aud.length === 1 ? aud[0] : aud;
  const isLegacy = acceptTokenEndpointAudience && (only === issuer || only === tokenEndpoint);
  return isLegacy ? undefined : 'assertion_audience_mismatch';
}

/** Epoch milliseconds. */
interface Lifetime {
  readonly issuedAt: number;
  readonly expiresAt: number;
}

/**
 * From when to when an assertion may be used, or why it may not be now (RFC 7523 §3 items 4–6). Libraries choose `exp` for an
 * hour, so `iat` bounds it where there is one.
 * @param now epoch seconds
 */
function lifetimeOf({ exp, iat, nbf }: JsonObject, now: number): Lifetime | AssertionRefusal {
  if (exp === undefined) return 'assertion_expiry_missing';
  if (!isNumericDate(exp) || !isOptionalDate(iat) || !isOptionalDate(nbf)) return 'assertion_claims_malformed';
  if (exp + SKEW_SECONDS < now) return 'assertion_expired';
  if (Math.max(iat ?? 0, nbf ?? 0) > now + SKEW_SECONDS) return 'assertion_not_yet_valid';
  const end = iat === undefined ? exp : Math.min(exp, iat + LIFETIME_SECONDS_MAX);
  if (end + SKEW_SECONDS < now) return 'assertion_too_old';
  // Without `iat` it is of no use before this.
  const earliest = end - LIFETIME_SECONDS_MAX - SKEW_SECONDS;
  if (earliest > now) return 'assertion_lifetime_too_long';
  // It is accepted up to and including `end + SKEW_SECONDS`: its mark outlives that moment.
  return {
    issuedAt: Math.floor(1000 * (iat ?? earliest)),
    expiresAt: Math.ceil(1000 * (end + SKEW_SECONDS + STORE_SKEW_SECONDS)),
  };
}

function idRefusal(jti: unknown): AssertionRefusal | undefined {
  if (jti === undefined) return 'assertion_jti_missing';
  const isId = typeof jti === 'string' && jti !== '' && jti.length <= ID_CHARACTERS_MAX;
  return isId ? undefined : 'assertion_jti_invalid';
}

/** RFC 7519 §2: seconds, possibly with a fraction. `1e999` is a number of JSON, too. */
function isNumericDate(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

function isOptionalDate(value: unknown): value is number | undefined {
  return value === undefined || isNumericDate(value);
}
