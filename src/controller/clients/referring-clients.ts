// Which clients refer to an object, whatever their manifests are worth: a change of the object queues
// them.

import { defaultSecretName } from '../../admission/client-secrets/client-secret-manifest.ts';
import { fieldsOf } from '../../admission/kinds/manifest.ts';
import type { KubernetesObject } from '../../kubernetes/objects/resources.ts';

/** The kinds that a client refers to; `Identifiers` are those of all resources of its namespace, which is the key. */
export type ReferredKind = 'Secret' | 'ConfigMap' | 'ServiceAccount' | 'ProtectedResource' | 'Identifiers';

/** The most accounts of a client that are followed; admission refuses more. */
const ACCOUNTS_MAX = 16;
/** The most resources of a client that are followed. */
const RESOURCES_MAX = 32;

export class ReferringClients {
  /** Keys of clients, by kind and key of the object. */
  readonly #byObject: Readonly<Record<ReferredKind, Map<string, Set<string>>>> = {
    Secret: new Map(),
    ConfigMap: new Map(),
    ServiceAccount: new Map(),
    ProtectedResource: new Map(),
    Identifiers: new Map(),
  };

  /** The keys of the clients that refer to an object. @param key `<namespace>/<name>` of an object */
  to(kind: ReferredKind, key: string): Iterable<string> {
    return this.#byObject[kind].get(key) ?? [];
  }

  /** @param key of the client */
  add(key: string, client: KubernetesObject): void {
    for (const [kind, referred] of referencesOf(client)) {
      const referring = this.#byObject[kind].get(referred) ?? new Set();
      this.#byObject[kind].set(referred, referring.add(key));
    }
  }

  /** @param client in the form in which it was added */
  delete(key: string, client: KubernetesObject): void {
    for (const [kind, referred] of referencesOf(client)) {
      const referring = this.#byObject[kind].get(referred);
      if (referring?.delete(key) && referring.size === 0) this.#byObject[kind].delete(referred);
    }
  }
}

/** Of Secrets the one that a client names or has by default. */
function referencesOf({ metadata, spec }: KubernetesObject): readonly (readonly [ReferredKind, string])[] {
  const { clientSecret, privateKeyJwt, serviceAccounts } = fieldsOf(fieldsOf(spec).auth);
  const { secretName } = fieldsOf(clientSecret);
  const { name: configMap } = fieldsOf(fieldsOf(privateKeyJwt).jwksConfigMapRef);
  const accounts = Array.isArray(serviceAccounts) ? serviceAccounts.slice(0, ACCOUNTS_MAX) : [];
  const names: readonly (readonly [ReferredKind, unknown])[] = [
    ['Secret', typeof secretName === 'string' ? secretName : defaultSecretName(metadata.name)],
    ['ConfigMap', configMap],
    ...accounts.map((account) => ['ServiceAccount', fieldsOf(account).name] as const),
  ];
  return [
    ...names.flatMap(([kind, name]) =>
      typeof name === 'string' ? [[kind, `${metadata.namespace}/${name}`] as const] : [],
    ),
    ...resourcesOf(spec).map(({ namespace = metadata.namespace, name }) => {
      return ['ProtectedResource', `${namespace}/${name}`] as const;
    }),
    ...(introspects(spec) ? [['Identifiers', metadata.namespace ?? ''] as const] : []),
  ];
}

/** Whether it names audiences whose tokens it may introspect: those of its own namespace's resources need no policy. */
function introspects(spec: unknown): boolean {
  const { audiences } = fieldsOf(fieldsOf(spec).resourceServer);
  return Array.isArray(audiences) && audiences.length > 0;
}

/** Of another namespace as well. */
function resourcesOf(spec: unknown): readonly { readonly namespace?: string; readonly name: string }[] {
  const { resources } = fieldsOf(spec);
  if (!Array.isArray(resources)) return [];
  return resources.slice(0, RESOURCES_MAX).flatMap((reference: unknown) => {
    const { namespace, name } = fieldsOf(reference);
    if (typeof name !== 'string') return [];
    return typeof namespace === 'string' ? [{ namespace, name }] : [{ name }];
  });
}
