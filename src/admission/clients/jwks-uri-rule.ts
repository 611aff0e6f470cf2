// The protocol's rule for the address at which a client publishes its keys. Whether its policy permits the host:
// policy-violations.ts.

import { type JwksUriFault, jwksUriFault } from '../../oauth/values/jwks-uri.ts';
import type { Fault } from '../kinds/conditions.ts';
import type { CommonSpec } from '../kinds/oauth-client.ts';
import { quoted } from '../kinds/quoted.ts';

const SENTENCES: Readonly<Record<JwksUriFault, string>> = {
  not_https: 'is not an https address',
  userinfo: 'holds a user name or password',
  fragment: 'has a fragment',
  address_literal: 'has an IP address in place of the name of its host',
  malformed: 'is not an address in the form browsers show, with its host in lower case',
};

/** The fault of `spec.auth.privateKeyJwt.jwksUri`, whatever the method; empty where there is none. */
export function jwksUriFaults({ auth }: Pick<CommonSpec, 'auth'>): readonly Fault[] {
  const { jwksUri } = auth.privateKeyJwt ?? {};
  const name = jwksUri === undefined ? undefined : jwksUriFault(jwksUri);
  if (jwksUri === undefined || name === undefined) return [];
  const message = `${quoted(jwksUri)} ${SENTENCES[name]}.`;
  return [{ path: ['spec', 'auth', 'privateKeyJwt', 'jwksUri'], reason: 'InvalidJwks', message }];
}
