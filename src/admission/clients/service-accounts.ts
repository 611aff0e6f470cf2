// The ServiceAccounts whose tokens authenticate a kubernetes_service_account client: accounts of its namespace, each by the
// uid that it has now, so that an account which is deleted and made again is another one until the lookup has it.

import type { ServiceAccountIdentity } from '../../oauth/registry/client.ts';
import type { Fault } from '../kinds/conditions.ts';
import type { FieldPath } from '../kinds/field-path.ts';
import type { ObjectIdentity } from '../kinds/manifest.ts';
import type { CommonSpec, OAuthClientSpec } from '../kinds/oauth-client.ts';
import { quoted } from '../kinds/quoted.ts';
import { isUnknownUid, type References, type UnknownUid } from '../references/references.ts';

/** The accounts of a client, as far as they are there. */
export interface ClientAccounts {
  readonly found: readonly ServiceAccountIdentity[];
  /** The indexes in `spec.auth.serviceAccounts` of those that do not exist. */
  readonly missing: readonly number[];
  /** Why the uids of others are not known; undefined when those of all are. */
  readonly unknown: UnknownUid | undefined;
}

const PATH: FieldPath = ['spec', 'auth', 'serviceAccounts'];
/** The account of every pod that names none: all workloads of a namespace would be the client. */
const DEFAULT_ACCOUNT = 'default';

/** Every rule about its accounts that the manifest of a client breaks by itself. */
export function accountRuleFaults({ auth: { serviceAccounts } }: Pick<CommonSpec, 'auth'>): readonly Fault[] {
  if (serviceAccounts.length === 0) {
    const message = 'At least one ServiceAccount of this namespace must be named.';
    return [{ path: PATH, reason: 'InvalidManifest', message }];
  }
  const index = serviceAccounts.findIndex(({ name }) => name === DEFAULT_ACCOUNT);
  if (index === -1) return [];
  const message =
    'The account default is that of every pod which names no other: give the workload a ServiceAccount of its own.';
  return [{ path: [...PATH, index, 'name'], reason: 'InvalidManifest', message }];
}

/** Looks the accounts up, in the client's own namespace only. */
export function clientAccounts(
  { namespace }: Pick<ObjectIdentity, 'namespace'>,
  { auth }: Pick<OAuthClientSpec, 'auth'>,
  { serviceAccountUid }: Pick<References, 'serviceAccountUid'>,
): ClientAccounts {
  const accounts = auth.serviceAccounts.map(({ name }) => ({ name, uid: serviceAccountUid(namespace, name) }));
  return {
    found: accounts.flatMap(({ name, uid }) => (uid === undefined || isUnknownUid(uid) ? [] : { name, uid })),
    missing: accounts.flatMap(({ uid }, index) => (uid === undefined ? index : [])),
    unknown: accounts.map(({ uid }) => uid).find((uid) => uid !== undefined && isUnknownUid(uid)),
  };
}

/** One fault for each account that does not exist; none for `default`, which is refused anyway. */
export function missingAccountFaults(
  { auth: { serviceAccounts } }: Pick<OAuthClientSpec, 'auth'>,
  { missing }: Pick<ClientAccounts, 'missing'>,
): readonly Fault[] {
  const refusable = missing.filter((index) => serviceAccounts[index]?.name !== DEFAULT_ACCOUNT);
  return refusable.map((index) => ({
    path: [...PATH, index, 'name'],
    reason: 'ServiceAccountNotFound',
    message: `There is no ServiceAccount ${quoted(serviceAccounts[index]?.name ?? '')} in this namespace.`,
  }));
}
