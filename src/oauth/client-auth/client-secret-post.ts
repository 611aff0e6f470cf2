// client_secret_post: id and secret as form parameters (RFC 6749 §2.3.1). Accepted for clients registered for it, not
// recommended: bodies end up in logs. Never read from a query: `http/server` refuses OAuth parameters there.

import type { ClientAuthMethod } from './method.ts';
import { verifySecret } from './secret-verification.ts';

export const clientSecretPost: ClientAuthMethod = {
  confidential: true,
  implicit: false,
  usesHeader: false,
  usesSecret: true,
  usesCertificate: false,
  signingAlgorithms: [],
  parameters: ['client_secret'],
  attempt({ parameters }) {
    const secret = parameters.get('client_secret');
    if (secret === undefined) return undefined;
    return { clientId: parameters.get('client_id'), verify: (client) => verifySecret(client, [secret]) };
  },
};
