// none: a public client identifies itself by client_id and proves nothing (RFC 6749 §2.1); PKCE binds its code,
// rotation its refresh token. It applies only if the request uses no other method.

import type { ClientAuthMethod } from './method.ts';
import { verifySecret } from './secret-verification.ts';

export const none: ClientAuthMethod = {
  confidential: false,
  implicit: true,
  usesHeader: false,
  usesSecret: false,
  usesCertificate: false,
  signingAlgorithms: [],
  parameters: [],
  attempt({ parameters }) {
    const clientId = parameters.get('client_id');
    if (clientId === undefined) return undefined;
    return {
      clientId,
      verify: (client) => {
        const work = verifySecret(undefined, ['']);
        return client === undefined ? work : { ok: true };
      },
    };
  },
};
