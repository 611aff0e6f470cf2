// The refusals of a credential that only its client can cause, or a holder of what the client or its cluster signed. They are
// reported to the owner of the client; every other one is in logs and metrics alone, as a stranger could cause it.

import { ACCOUNT_TOKEN_REFUSALS } from './kubernetes-service-account.ts';
import { ASSERTION_REFUSALS } from './private-key-jwt.ts';

export const REPORTED_REFUSALS = [
  'client_assertion_replayed',
  ...ASSERTION_REFUSALS,
  ...ACCOUNT_TOKEN_REFUSALS,
] as const;

export type ReportedRefusal = (typeof REPORTED_REFUSALS)[number];
