// client_credentials (RFC 6749 §4.4): a confidential client acts for itself. It never gets a refresh token.

import { resolveResource } from '../access/resource-indicator.ts';
import { resolveScope } from '../access/scope.ts';
import { storedBytes } from '../limits/namespace-state.ts';
import { requireNotRevokedUntil } from '../tokens/revocation-checks.ts';
import type { GrantType } from './grant.ts';

export const clientCredentials: GrantType = {
  parameters: ['scope', 'resource'],
  isOfPerson: false,
  async exchange({ client, access, parameters, accessToken }, { stores, limits }) {
    // Its age is counted in whole seconds (tokens/token-status.ts).
    requireNotRevokedUntil(client, accessToken.issuedAtSeconds * 1000);
    const audience = resolveResource(parameters.all('resource'), access, accessToken.confirmation);
    const scope = resolveScope(parameters.get('scope'), [audience], access);
    const subject = client.clientId;
    const written = accessToken.opaque(undefined);
    if (written) {
      const { uid: clientUid, clientId } = client;
      const person = { grantId: undefined, authTime: undefined };
      const expiresAtSeconds = accessToken.expiresAt(audience);
      const token = { ...written, expiresAtSeconds, clientUid, clientId, subject, scope, audience, ...person };
      const record = { bytes: storedBytes(token), expiresAtSeconds };
      await limits.namespaces.hold(client, record, () => stores.accessTokens.write(token));
    }
    const ofPerson = { grantId: undefined, authTime: undefined, openid: undefined, refreshToken: undefined };
    return { subject, scope, audience, ...ofPerson };
  },
};
