// The client assertion of a request (RFC 7521 §4.2, RFC 7523 §2.2): one credential, which several methods read. Its unverified
// claims say whose it is: `iss` and `sub` are the same for private_key_jwt, and differ in the token of a ServiceAccount.

import { type Jwt, parseJwt } from '../values/jws.ts';
import type { Parameters } from '../values/parameters.ts';

/** The form parameters of an assertion. */
export const ASSERTION_PARAMETERS: readonly string[] = ['client_assertion', 'client_assertion_type'];

const JWT_BEARER = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

/** A JWT with the two claims that every assertion has; nothing of it is verified. */
export interface ClientAssertion {
  readonly jwt: Jwt;
  /** `iss`; never empty. */
  readonly issuer: string;
  /** `sub`; never empty. */
  readonly subject: string;
}

/** Why an assertion cannot be read: a slug for logs, metrics and tests. */
export type AssertionFault =
  | 'assertion_missing'
  | 'assertion_type_missing'
  | 'assertion_type_unsupported'
  | 'assertion_malformed';

const ofRequest = new WeakMap<Parameters, ClientAssertion | AssertionFault>();

/** The assertion of a request, parsed at the first call; undefined when the request has none. */
export function presentedAssertion(parameters: Parameters): ClientAssertion | AssertionFault | undefined {
  const assertion = parameters.get('client_assertion');
  const type = parameters.get('client_assertion_type');
  if (assertion === undefined) return type === undefined ? undefined : 'assertion_missing';
  let presented = ofRequest.get(parameters);
  if (presented === undefined) {
    presented = read(assertion, type);
    ofRequest.set(parameters, presented);
  }
  return presented;
}

function read(assertion: string, type: string | undefined): ClientAssertion | AssertionFault {
  if (type === undefined) return 'assertion_type_missing';
  if (type !== JWT_BEARER) return 'assertion_type_unsupported';
  const jwt = parseJwt(assertion);
  if (typeof jwt === 'string') return 'assertion_malformed';
  const { iss: issuer, sub: subject } = jwt.claims;
  return isName(issuer) && isName(subject) ? { jwt, issuer, subject } : 'assertion_malformed';
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
