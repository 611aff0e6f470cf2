// The protocol's rules for what is disclosed to a client of people who sign in: ID tokens, groups, and the address for logout
// tokens. What policies permit of it: policy-violations.ts.

import type { IdTokenSettings } from '../../oauth/registry/client.ts';
import { type JwksUriFault, jwksUriFault } from '../../oauth/values/jwks-uri.ts';
import { isLoopback, redirectUriFault } from '../../oauth/values/redirect-uri.ts';
import type { SigningAlgorithm } from '../../oauth/values/signature.ts';
import type { Fault } from '../kinds/conditions.ts';
import { formatDuration } from '../kinds/duration.ts';
import type { CommonSpec, OAuthClientSpec } from '../kinds/oauth-client.ts';
import { quoted } from '../kinds/quoted.ts';

/** What `spec.groups` stands for where it is not set. */
export const EVERY_GROUP: readonly string[] = ['*'];

const ALGORITHMS: readonly SigningAlgorithm[] = ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA'];
const LEAST_LIFETIME_SECONDS = 60;
const MOST_LIFETIME_SECONDS = 24 * 3600;

/** The settings of a manifest that breaks no rule. */
export function idTokenSettings({ tokens }: Pick<CommonSpec, 'tokens'>): IdTokenSettings {
  const { signingAlgorithm, lifetimeSeconds } = tokens.idTokens;
  const known = ALGORITHMS.find((algorithm) => algorithm === signingAlgorithm);
  if (known === undefined) throw new TypeError(`no algorithm of ID tokens: ${quoted(signingAlgorithm)}`);
  return { signingAlgorithm: known, lifetimeSeconds };
}

/** The faults of the settings for ID tokens, and of a filter for groups that are never disclosed. */
export function openIdFaults({ tokens, groups, scopes }: CommonSpec): readonly Fault[] {
  const faults: Fault[] = [];
  const { signingAlgorithm, lifetimeSeconds } = tokens.idTokens;
  if (!ALGORITHMS.some((algorithm) => algorithm === signingAlgorithm)) {
    const message = `ID tokens cannot be signed with ${quoted(signingAlgorithm)}; there are ${ALGORITHMS.join(', ')}.`;
    const path = ['spec', 'tokens', 'idTokenSigningAlgorithm'];
    faults.push({ path, reason: 'InvalidTokenSettings', message });
  }
  if (lifetimeSeconds < LEAST_LIFETIME_SECONDS || lifetimeSeconds > MOST_LIFETIME_SECONDS) {
    const message = `Must be from ${formatDuration(LEAST_LIFETIME_SECONDS)} to ${formatDuration(MOST_LIFETIME_SECONDS)}.`;
    faults.push({ path: ['spec', 'tokens', 'idTokenLifetime'], reason: 'InvalidTokenSettings', message });
  }
  if (groups !== undefined && !scopes.includes('groups')) {
    const message = 'Groups are disclosed only to a client with the scope groups, which is not among spec.scopes.';
    faults.push({ path: ['spec', 'groups'], reason: 'InvalidManifest', message });
  }
  return faults;
}

const SENTENCES: Readonly<Record<JwksUriFault, string>> = {
  not_https: 'is not an https address',
  userinfo: 'holds a user name or password',
  fragment: 'has a fragment',
  address_literal: 'has an IP address in place of the name of its host',
  malformed: 'is not an address in the form browsers show, with its host in lower case',
};

/**
 * The faults of `spec.backchannelLogoutUri` (OpenID Connect Back-Channel Logout §2.2).
 * @param issuer with an http issuer the address may be http on loopback; undefined where it is not known: then it may, too
 */
export function logoutUriFaults(
  { backchannelLogoutUri: uri, scopes }: Pick<OAuthClientSpec, 'backchannelLogoutUri' | 'scopes'>,
  issuer: string | undefined,
): readonly Fault[] {
  if (uri === undefined) return [];
  const refuse = (message: string): Fault => ({
    path: ['spec', 'backchannelLogoutUri'],
    reason: 'InvalidManifest',
    message,
  });
  const faults: Fault[] = [];
  if (!scopes.includes('openid')) {
    faults.push(refuse('A client is notified of sign-ins with the scope openid, which is not among spec.scopes.'));
  }
  const name = addressFault(uri, issuer);
  if (name !== undefined) faults.push(refuse(`${quoted(uri)} ${SENTENCES[name]}.`));
  return faults;
}

function addressFault(uri: string, issuer: string | undefined): JwksUriFault | undefined {
  const mayBeHttp = issuer === undefined || issuer.startsWith('http://');
  if (!mayBeHttp || !uri.startsWith('http://') || !isLoopback(uri)) return jwksUriFault(uri);
  const fault = redirectUriFault(uri);
  if (fault === 'userinfo' || fault === 'fragment') return fault;
  return fault === undefined || fault === 'response_parameter' ? undefined : 'malformed';
}
