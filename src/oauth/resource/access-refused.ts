// The refusal of a request by its access token, on its way to the answer. For the library and the userinfo endpoint alike.

import type { Refusal } from './refusal.ts';

/** A request that is refused for its access token, or for the lack of one. */
export class AccessRefused extends Error {
  readonly refusal: Refusal;
  /** Of the registered client that the token is of, for logs; undefined where that is unknown. */
  readonly clientId: string | undefined;

  constructor(refusal: Refusal, { cause, clientId }: { readonly cause?: unknown; readonly clientId?: string } = {}) {
    super(refusal.reason, { cause });
    this.name = 'AccessRefused';
    this.refusal = refusal;
    this.clientId = clientId;
  }
}
