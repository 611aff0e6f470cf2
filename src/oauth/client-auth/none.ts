// none: a public client identifies itself by client_id and proves nothing (RFC 6749 §2.1); PKCE binds its code,
// rotation its refresh token. It counts only if the request uses no other method.

import { secretMatches } from '../registry/client-secret.ts';
import type { ClientAuthMethod } from './method.ts';

export const none: ClientAuthMethod = {
  confidential: false,
  usesHeader: false,
  usesSecret: false,
  parameters: [],
  attempt({ parameters }) {
    const clientId = parameters.get('client_id');
    if (clientId === undefined) return undefined;
    return {
      clientId,
      verify: (client) => {
        secretMatches(undefined, ['']);
        return client !== undefined;
      },
    };
  },
};
