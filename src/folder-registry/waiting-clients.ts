// Finds the objects that accepted clients refer to and that are not among the checked files. An offline check assumes
// that they exist; the cluster serves the client once they do.

import { clientSecretName, hasGeneratedSecret } from '../admission/client-secrets/client-secret-manifest.ts';
import type { ClientVerdict } from '../admission/clients/admit-client.ts';
import type { ManifestKind, ManifestObject } from '../manifests/objects.ts';
import type { Place } from '../manifests/place.ts';
import { SECRET_METHODS } from '../oauth/client-auth/index.ts';

/** One missing object that one client refers to, in the client's namespace. */
export interface Waiting {
  readonly clientId: string;
  readonly kind: ManifestKind;
  readonly namespace: string;
  readonly name: string;
  /** The place of the client. */
  readonly place: Place;
}

/** All references of these clients that no object resolves. Refused clients are left out: their faults come first. */
export function waitingClients(
  clients: readonly ClientVerdict<ManifestObject>[],
  objects: readonly ManifestObject[],
): readonly Waiting[] {
  const present = new Set(objects.map(({ kind, namespace, name }) => `${kind}/${namespace}/${name}`));
  return clients
    .filter(({ faults }) => faults.length === 0)
    .flatMap((verdict) => {
      const { clientId, object } = verdict;
      const { namespace, place } = object;
      return referredTo(verdict)
        .filter(({ kind, name }) => !present.has(`${kind}/${namespace}/${name}`))
        .map(({ kind, name }) => ({ clientId, kind, namespace, name, place }));
    });
}

function referredTo({ manifest, object }: ClientVerdict): readonly Pick<Waiting, 'kind' | 'name'>[] {
  if (manifest === undefined) return [];
  const { spec } = manifest;
  const { method, privateKeyJwt, serviceAccounts } = spec.auth;
  const hasExistingSecret = SECRET_METHODS.includes(method) && !hasGeneratedSecret(spec);
  const configMap = privateKeyJwt?.jwksConfigMapRef;
  return [
    ...(hasExistingSecret ? [{ kind: 'Secret', name: clientSecretName(object.name, spec) } as const] : []),
    ...(configMap === undefined ? [] : [{ kind: 'ConfigMap', name: configMap.name } as const]),
    ...serviceAccounts.map(({ name }) => ({ kind: 'ServiceAccount', name }) as const),
  ];
}
