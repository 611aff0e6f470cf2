// client_secret_post: id and secret as form parameters (RFC 6749 §2.3.1). Accepted for clients registered for it, not
// recommended: bodies end up in logs. Never read from a query: `http/server` refuses OAuth parameters there.

import { secretMatches } from '../registry/client-secret.ts';
import type { ClientAuthMethod } from './method.ts';

export const clientSecretPost: ClientAuthMethod = {
  confidential: true,
  usesHeader: false,
  usesSecret: true,
  parameters: ['client_secret'],
  attempt({ parameters }) {
    const secret = parameters.get('client_secret');
    if (secret === undefined) return undefined;
    return { clientId: parameters.get('client_id'), verify: (client) => secretMatches(client, [secret]) };
  },
};
