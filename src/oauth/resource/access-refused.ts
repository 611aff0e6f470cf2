// The refusal of a request by its access token, on its way to the answer. For the library and the userinfo endpoint alike.

import type { BearerError } from './bearer-error.ts';

/** A request that is refused for its access token, or for the lack of one. */
export class AccessRefused extends Error {
  readonly bearerError: BearerError;
  /** Of the registered client that the token is of, for logs; undefined where that is unknown. */
  readonly clientId: string | undefined;

  constructor(
    bearerError: BearerError,
    { cause, clientId }: { readonly cause?: unknown; readonly clientId?: string } = {},
  ) {
    super(bearerError.reason, { cause });
    this.name = 'AccessRefused';
    this.bearerError = bearerError;
    this.clientId = clientId;
  }
}
