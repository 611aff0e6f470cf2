// The install of the model: what controllers and token server are configured with.

import { CLIENT_AUTH_METHODS } from '../../../src/oauth/client-auth/index.ts';

export const INSTALL = {
  issuer: 'https://id.example',
  className: 'default',
  releaseNamespace: 'grantry-system',
  defaultPolicy: 'Baseline',
  supportedAuthMethods: [...CLIENT_AUTH_METHODS.keys()],
} as const;

export const LEASE = 'grantry-controller';
