// kubernetes_service_account: the projected token of a pod's ServiceAccount is the client assertion, so that no secret exists
// (RFC 7523 §2.2; `client_id` is required, as the token names an account and no client). The token is short-lived and
// reused by the pod until the kubelet renews it: it leaves no replay mark.

import type { Client } from '../registry/client.ts';
import type { VerificationKey } from '../values/jwk.ts';
import type { JsonObject, Jwt } from '../values/jws.ts';
import { verifyInVain, verifyWithKeys } from '../values/key-selection.ts';
import type { SigningAlgorithm } from '../values/signature.ts';
import { ASSERTION_PARAMETERS, presentedAssertion } from './assertion.ts';
import type { ClientAuthMethod, Verification, VerificationContext } from './method.ts';

/** Why a token that the cluster issued for an account of the client is refused: a slug for logs, metrics, tests and status. */
export const ACCOUNT_TOKEN_REFUSALS = [
  'account_was_replaced',
  'account_token_audience_mismatch',
  'account_token_times_malformed',
  'account_token_expired',
  'account_token_lifetime_too_long',
  'account_token_not_yet_valid',
] as const;

type AccountTokenRefusal = (typeof ACCOUNT_TOKEN_REFUSALS)[number];

/** Those that API servers sign by, and the rest that verifies here. */
const CLUSTER_ALGORITHMS: readonly SigningAlgorithm[] = ['RS256', 'ES256', 'ES384', 'PS256', 'EdDSA'];
const LIFETIME_SECONDS_MAX = 3600;
/** How far the clocks of the API server and of a replica may be apart. */
const SKEW_SECONDS = 60;

export const kubernetesServiceAccount: ClientAuthMethod = {
  confidential: true,
  implicit: false,
  usesHeader: false,
  usesSecret: false,
  usesCertificate: false,
  // The cluster signs, by keys that its administrator chose.
  signingAlgorithms: [],
  parameters: ASSERTION_PARAMETERS,
  attempt({ parameters }) {
    const assertion = presentedAssertion(parameters);
    if (assertion === undefined || typeof assertion === 'string') return undefined;
    const { jwt, issuer, subject } = assertion;
    if (issuer === subject) return undefined;
    const clientId = parameters.get('client_id');
    const verify = (client: Client | undefined, context: VerificationContext) => verifyToken(jwt, client, context);
    return clientId === undefined ? { clientId, malformed: 'client_id_missing', verify } : { clientId, verify };
  },
};

async function verifyToken(
  jwt: Jwt,
  client: Client | undefined,
  { issuer, clock, clusterIssuer }: VerificationContext,
): Promise<Verification> {
  if (client === undefined) {
    verifyInVain(jwt);
    return refused('key_unknown');
  }
  const cluster = await clusterIssuer.current(jwt.header.kid);
  if (jwt.claims.iss !== cluster.issuer) {
    verifyInVain(jwt);
    return refused('account_token_issuer_mismatch');
  }
  const signer: VerificationKey | string = verifyWithKeys(jwt, { keys: cluster.keys, algorithms: CLUSTER_ALGORITHMS });
  if (typeof signer === 'string') return refused(signer);
  // The account first: what is refused afterwards is of the client's own account, and its owner can mend it.
  const reason =
    accountRefusal(jwt.claims, client) ??
    audienceRefusal(jwt.claims, issuer) ??
    lifetimeRefusal(jwt.claims, clock.now() / 1000);
  return reason === undefined ? { ok: true } : refused(reason);
}

function refused(reason: string): Verification {
  return { ok: false, reason };
}

/** The token is for this server and no other: one for several could be replayed by the others. */
function audienceRefusal({ aud }: JsonObject, issuer: string): AccountTokenRefusal | undefined {
  const isOurs = Array.isArray(aud) && aud.length === 1 && aud[0] === issuer;
  return isOurs ? undefined : 'account_token_audience_mismatch';
}

/** @param now epoch seconds */
function lifetimeRefusal({ iat, exp, nbf }: JsonObject, now: number): AccountTokenRefusal | undefined {
  if (!isNumericDate(iat) || !isNumericDate(exp)) return 'account_token_times_malformed';
  if (nbf !== undefined && !isNumericDate(nbf)) return 'account_token_times_malformed';
  if (exp + SKEW_SECONDS < now) return 'account_token_expired';
  if (exp - iat > LIFETIME_SECONDS_MAX) return 'account_token_lifetime_too_long';
  return Math.max(iat, nbf ?? 0) > now + SKEW_SECONDS ? 'account_token_not_yet_valid' : undefined;
}

/** The private claims of a ServiceAccount token: `kubernetes.io`, which a legacy token lacks. */
function accountRefusal({ sub, 'kubernetes.io': bound }: JsonObject, client: Client): string | undefined {
  const { namespace, serviceaccount } = objectOf(bound);
  const { name, uid } = objectOf(serviceaccount);
  if (typeof namespace !== 'string' || typeof name !== 'string' || typeof uid !== 'string') {
    return 'account_token_malformed';
  }
  if (sub !== `system:serviceaccount:${namespace}:${name}`) return 'account_token_malformed';
  if (namespace !== client.namespace) return 'account_of_another_namespace';
  const registered = client.serviceAccounts.find((account) => account.name === name);
  if (registered === undefined) return 'account_not_registered';
  return registered.uid === uid ? undefined : 'account_was_replaced';
}

function objectOf(value: unknown): JsonObject {
  return typeof value === 'object' && value !== null ? (value as JsonObject) : {};
}

function isNumericDate(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}
