// Every store contract there is. An implementation is one call more in a runner file: `contracts.test.ts` for what needs no
// socket, `test/redis/stores/contracts.test.ts` for Redis.

import { rateLimitStoreContract, replayStoreContract } from './counting-stores.ts';
import { grantAccessContract } from './grant-access.ts';
import { grantEvictionContract } from './grant-eviction.ts';
import { grantRedemptionContract } from './grant-redemption.ts';
import { grantRetriesContract } from './grant-retries.ts';
import { grantRotationContract } from './grant-rotation.ts';
import { grantStatusContract } from './grant-status.ts';
import { keyBindingContract } from './key-binding.ts';
import { consentStoreContract, interactionStoreContract, sessionStoreContract } from './login-stores.ts';
import { loginsAgainstEndsContract } from './logins-against-ends.ts';
import { personStoreContract } from './person-store.ts';
import { recordedLoginsContract } from './recorded-logins.ts';
import { sessionLoginsContract } from './session-logins.ts';
import type { MakeStores } from './store-world.ts';
import { accessTokenStoreContract, revokedTokenStoreContract, watermarkStoreContract } from './token-stores.ts';
import { useStoreContract } from './use-store.ts';
import { userStoreContract } from './user-store.ts';

const CONTRACTS = [
  grantEvictionContract,
  grantRedemptionContract,
  grantRotationContract,
  grantAccessContract,
  grantRetriesContract,
  grantStatusContract,
  keyBindingContract,
  accessTokenStoreContract,
  revokedTokenStoreContract,
  watermarkStoreContract,
  sessionStoreContract,
  sessionLoginsContract,
  recordedLoginsContract,
  loginsAgainstEndsContract,
  userStoreContract,
  personStoreContract,
  interactionStoreContract,
  consentStoreContract,
  useStoreContract,
  replayStoreContract,
  rateLimitStoreContract,
];

/** Runs all contracts on one implementation. */
export function allContracts(name: string, makeStores: MakeStores): void {
  for (const contract of CONTRACTS) contract(name, makeStores);
}
