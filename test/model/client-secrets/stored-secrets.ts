// What the API server holds of the secrets of clients, read as a consumer and as a token server read it.

import {
  CLIENT_LABEL,
  CLIENT_UID_LABEL,
  defaultSecretName,
} from '../../../src/admission/client-secrets/client-secret-manifest.ts';
import {
  activeVerifiers,
  type ClientVerifiers,
  readVerifierSecret,
  verifierSecretName,
} from '../../../src/admission/client-secrets/client-verifier.ts';
import { fieldsOf } from '../../../src/admission/kinds/manifest.ts';
import { type KubernetesObject, OAUTH_CLIENTS, SECRETS } from '../../../src/kubernetes/objects/resources.ts';
import { secretVerifier } from '../../../src/oauth/registry/client-secret.ts';
import type { MemoryApiServer } from '../api-server/memory-api-server.ts';
import { INSTALL } from './install.ts';

/** The namespace of the clients. */
export const TEAM = 'team';

/** The keys that clients have their secret under. */
export const KEYS = ['client-secret', 'password'] as const;

const SHORTEST = 32;

/** The client secret that a Secret holds under the first of its keys that holds one. */
export function valueIn(secret: KubernetesObject | undefined): string | undefined {
  const data = fieldsOf(secret?.data);
  const texts = KEYS.map((key) => textOf(data[key]));
  return texts.find((text) => text.length >= SHORTEST);
}

/** The text under the key that a client names. */
export function valueUnder(secret: KubernetesObject, client: KubernetesObject): string {
  return textOf(fieldsOf(secret.data)[keyOf(client)]);
}

function textOf(data: unknown): string {
  return typeof data === 'string' ? Buffer.from(data, 'base64').toString() : '';
}

/** The uid of the client that a Secret is labelled for. */
export function labelledUid({ metadata }: KubernetesObject): string | undefined {
  return metadata.labels?.[CLIENT_UID_LABEL];
}

export function labelledName({ metadata }: KubernetesObject): string | undefined {
  return metadata.labels?.[CLIENT_LABEL];
}

/** The settings of a client's Secret as its manifest has them. */
export function settingsOf({ spec }: KubernetesObject): Readonly<Record<string, unknown>> {
  return fieldsOf(fieldsOf(fieldsOf(spec).auth).clientSecret);
}

/** The name of the Secret that a client names. */
export function secretNameOf(client: KubernetesObject): string {
  const { secretName } = settingsOf(client);
  return typeof secretName === 'string' ? secretName : defaultSecretName(client.metadata.name);
}

/** The key that a client names for its secret. */
export function keyOf(client: KubernetesObject): string {
  const { clientSecret } = fieldsOf(settingsOf(client).keys);
  return typeof clientSecret === 'string' ? clientSecret : KEYS[0];
}

export class StoredSecrets {
  readonly #server: MemoryApiServer;

  constructor(server: MemoryApiServer) {
    this.#server = server;
  }

  client(name: string): KubernetesObject | undefined {
    return this.#server.get(OAUTH_CLIENTS, { namespace: TEAM, name });
  }

  get clients(): readonly KubernetesObject[] {
    return this.#server.objects(OAUTH_CLIENTS);
  }

  clientOf(uid: string | undefined): KubernetesObject | undefined {
    return this.clients.find(({ metadata }) => metadata.uid === uid);
  }

  /** Whether it has owners, and none of them is there. */
  isOrphaned({ metadata: { ownerReferences = [] } }: KubernetesObject): boolean {
    return ownerReferences.length > 0 && ownerReferences.every(({ uid }) => this.clientOf(uid) === undefined);
  }

  /** Whether one of its owners is gone. */
  hasDanglingOwners({ metadata: { ownerReferences = [] } }: KubernetesObject): boolean {
    return ownerReferences.some(({ uid }) => this.clientOf(uid) === undefined);
  }

  secret(name: string): KubernetesObject | undefined {
    return this.#server.get(SECRETS, { namespace: TEAM, name });
  }

  /** The Secrets of the owners. */
  get secrets(): readonly KubernetesObject[] {
    return this.#server.objects(SECRETS).filter(({ metadata }) => metadata.namespace === TEAM);
  }

  get verifierSecrets(): readonly KubernetesObject[] {
    const { releaseNamespace } = INSTALL;
    return this.#server.objects(SECRETS).filter(({ metadata }) => metadata.namespace === releaseNamespace);
  }

  verifiersOf(uid: string): ClientVerifiers | undefined {
    const place = { namespace: INSTALL.releaseNamespace, name: verifierSecretName(uid) };
    return readVerifierSecret(this.#server.get(SECRETS, place));
  }

  /** Whether a token server that reads what is stored now accepts the secret. */
  accepts(uid: string, secret: string, now: number): boolean {
    const verifiers = this.verifiersOf(uid);
    const wanted = Buffer.from(secretVerifier(uid, secret));
    return verifiers !== undefined && activeVerifiers(verifiers, now).some((verifier) => wanted.equals(verifier));
  }
}
