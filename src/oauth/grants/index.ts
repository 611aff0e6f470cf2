// THE TABLE of grants. A new grant is one file and one line here; metadata, admission and the token endpoint read it.
// `implicit` and `password` are not in it and never will be (RFC 9700 §2.1.2, §2.4).

import { authorizationCode } from './authorization-code.ts';
import { clientCredentials } from './client-credentials.ts';
import type { GrantType } from './grant.ts';
import { refreshToken } from './refresh-token.ts';

/** By `grant_type`. */
export const GRANT_TYPES: ReadonlyMap<string, GrantType> = new Map([
  ['authorization_code', authorizationCode],
  ['client_credentials', clientCredentials],
  ['refresh_token', refreshToken],
]);
