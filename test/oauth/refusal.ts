// What a refused call of the protocol says, for tests that compare code and reason.

import { OAuthError } from '../../src/oauth/ports/error.ts';

/** The code and reason of the OAuthError that `act` throws; fails when it throws none. */
export function refusalOf(act: () => unknown): { readonly code: string; readonly reason: string } {
  try {
    act();
  } catch (error) {
    if (error instanceof OAuthError) return { code: error.code, reason: error.reason };
    throw error;
  }
  throw new Error('nothing was refused');
}
