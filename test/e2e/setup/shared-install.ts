// The install that most stories share: it is the one README shows, made by global-setup.ts. Each story leaves it as it was,
// or as the next one can use it.

import { Release } from './release.ts';

export const ISSUER = 'http://localhost:9480';
/** The issuer's: a browser must reach it at the address that it names. */
export const ISSUER_PORT = 9480;

export const sharedInstall = new Release({ namespace: 'grantry-system', name: 'grantry' });

declare module 'vitest' {
  interface ProvidedContext {
    /** From the start of `helm install` until all was ready. */
    installSeconds: number;
    /** What the API server said of its pods when restricted Pod Security was enforced: nothing, if all keep to it. */
    notRestricted: string;
  }
}
