// What must hold once nothing happens any more: each client has the one secret that its manifest asks for, the token server
// accepts it, and nothing is left of what is gone.

import { fieldsOf } from '../../../src/admission/kinds/manifest.ts';
import { readSecretNames } from '../../../src/controller/client-secrets/credential-state.ts';
import { uidOfVerifierSecret } from '../../../src/controller/client-secrets/verifier-secrets.ts';
import { conditionIn } from '../../../src/controller/reconciling/status-conditions.ts';
import type { KubernetesObject } from '../../../src/kubernetes/objects/resources.ts';
import { secretVerifier } from '../../../src/oauth/registry/client-secret.ts';
import type { Ledger } from './ledger.ts';
import {
  KEYS,
  keyOf,
  labelledName,
  labelledUid,
  type StoredSecrets,
  secretNameOf,
  settingsOf,
  valueIn,
  valueUnder,
} from './stored-secrets.ts';
import type { TokenServer } from './token-server.ts';

export interface ConvergedStateOptions {
  readonly stored: StoredSecrets;
  readonly ledger: Ledger;
  readonly tokenServer: TokenServer;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** What is not as it must be; none: it has converged. */
export function unconverged(options: ConvergedStateOptions): readonly string[] {
  const { stored, ledger } = options;
  const faults = stored.clients.flatMap((client) => {
    const { name } = client.metadata;
    return faultsOf(client, options).map((fault) => `${name}: ${fault}`);
  });
  for (const secret of stored.verifierSecrets) {
    if (stored.clientOf(uidOfVerifierSecret(secret)) === undefined) faults.push(`${secret.metadata.name} is left over`);
  }
  if (ledger.isCalm) faults.push(...leftOver(options));
  return faults;
}

function faultsOf(client: KubernetesObject, options: ConvergedStateOptions): readonly string[] {
  const { stored, tokenServer, ledger } = options;
  const { metadata, status } = client;
  const { uid, generation } = metadata;
  const secret = stored.secret(secretNameOf(client));
  if (fieldsOf(status).observedGeneration !== generation) return ['its status is about another generation'];
  const isShared = stored.clients.some((other) => other !== client && secretNameOf(other) === secretNameOf(client));
  // Two clients name one Secret: only the older one may have it, and it may not take it from the other.
  if (isShared && isToldTaken(client)) return [];
  if (secret === undefined) return ['it has no Secret'];
  if (labelledUid(secret) !== uid) return faultsOfTaken(client, secret, options);
  const value = valueUnder(secret, client);
  if (!tokenServer.accepts(uid, value)) return ['what stands under its key is not accepted'];
  const [newest, ...older] = stored.verifiersOf(uid)?.verifiers ?? [];
  const isNewest = newest !== undefined && Buffer.from(newest.verifier).equals(secretVerifier(uid, value));
  if (!isNewest || newest.expiresAt !== undefined) return ['what stands under its key is not its newest secret'];
  if (older.some(({ expiresAt }) => expiresAt === undefined)) return ['a rotation is pending'];
  if (conditionIn(status, 'Ready')?.status !== 'True') return ['it is not ready'];
  const owners = (secret.metadata.ownerReferences ?? []).map((owner) => owner.uid);
  if (owners.includes(uid) === (settingsOf(client).deletionPolicy === 'Retain')) return ['its Secret has wrong owners'];
  const data = fieldsOf(secret.data);
  if (ledger.isCalm && KEYS.some((key) => key !== keyOf(client) && key in data))
    return ['its Secret has a key too many'];
  return [];
}

/** Its name is taken: only by a Secret that may not be written. */
function faultsOfTaken(
  client: KubernetesObject,
  secret: KubernetesObject,
  { stored, ledger }: ConvergedStateOptions,
): readonly string[] {
  if (ledger.isCalm) return ['its Secret is labelled for another client'];
  const isOrphan = labelledName(secret) === client.metadata.name && stored.clientOf(labelledUid(secret)) === undefined;
  if (isOrphan && labelledUid(secret) !== undefined) return ['a Secret of its own is not taken over'];
  if (!isToldTaken(client)) return ['its status does not report that its name is taken'];
  return isEndedUnderAnotherName(client, { stored, ledger })
    ? ['it still has its Secret under another name, and its secret ends']
    : [];
}

/** Its newest secret is where the controller wrote it last, under a name that it does not give any more. A cut ends that too. */
function isEndedUnderAnotherName(
  client: KubernetesObject,
  { stored, ledger }: Pick<ConvergedStateOptions, 'stored' | 'ledger'>,
): boolean {
  const { uid, name } = client.metadata;
  const [newest] = stored.verifiersOf(uid)?.verifiers ?? [];
  if (newest?.expiresAt === undefined || newest.expiresAt <= ledger.cutAt(uid)) return false;
  const [last] = readSecretNames(stored.verifierSecrets.find((each) => uidOfVerifierSecret(each) === uid));
  if (last === undefined || last === secretNameOf(client)) return false;
  const secret = stored.secret(last);
  if (secret === undefined || labelledUid(secret) !== uid || labelledName(secret) !== name) return false;
  return Buffer.from(newest.verifier).equals(secretVerifier(uid, valueIn(secret) ?? ''));
}

function isToldTaken({ status }: KubernetesObject): boolean {
  return conditionIn(status, 'CredentialsReady')?.reason === 'SecretNotOwned';
}

/** The Secrets of a client under other names whose value is not accepted any more. */
function leftOver({ stored, ledger, now }: ConvergedStateOptions): readonly string[] {
  return stored.secrets.flatMap((secret) => {
    const { name, ownerReferences = [] } = secret.metadata;
    const client = stored.clientOf(labelledUid(secret));
    if (client === undefined)
      return ownerReferences.length === 0 ? [] : [`the Secret ${name} of no client is left over`];
    const isRetained = settingsOf(client).deletionPolicy === 'Retain';
    const { uid } = client.metadata;
    const isInGrace = stored.accepts(uid, valueIn(secret) ?? '', now);
    return isRetained || isInGrace || ledger.cameTooLate(secret) || name === secretNameOf(client)
      ? []
      : [`the former Secret ${name} is left over`];
  });
}
