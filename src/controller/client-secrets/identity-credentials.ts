// Stores what a client without a secret is authenticated by, for the token servers, which read no object of a tenant: the
// keys of its ConfigMap (private_key_jwt), or the uids of its ServiceAccounts (kubernetes_service_account). A client that
// needs neither has nothing stored.

import { identityTexts, type StoredIdentity } from '../../admission/client-secrets/client-verifier.ts';
import type { ClientFacts } from '../../admission/clients/client-set.ts';
import { accountCredentials, assertionCredentials, type Credentials } from '../../admission/clients/credentials.ts';
import type { ReferencedConfigMap, References } from '../../admission/references/references.ts';
import { CONFIG_MAPS } from '../../kubernetes/objects/resources.ts';
import type { ObjectView } from '../../kubernetes/watch/shared-reflector.ts';
import type { Clock } from '../../oauth/ports/ports.ts';
import type { LeaderApi } from '../leadership/leader-api.ts';
import { rotationRequests } from '../reconciling/rotation-requests.ts';
import type { CredentialState } from './credential-state.ts';
import type { CredentialSubject } from './credential-subject.ts';
import type { UnchangedCheck } from './unchanged-check.ts';

export interface IdentityCredentialsOptions {
  readonly api: LeaderApi;
  readonly serviceAccountUid: References['serviceAccountUid'];
  /** Metadata of the ConfigMaps in the namespaces of clients. */
  readonly configMaps: Pick<ObjectView, 'get'>;
  readonly unchangedCheck: UnchangedCheck;
  readonly clientExists: (uid: string) => boolean;
  readonly clock: Clock;
}

/** The uids of ServiceAccounts. One that is being deleted is treated as deleted: its tokens are not accepted any more. */
export function accountUids(serviceAccounts: Pick<ObjectView, 'get'>): References['serviceAccountUid'] {
  return (namespace, name) => {
    const { metadata } = serviceAccounts.get(`${namespace}/${name}`) ?? {};
    return metadata?.deletionTimestamp === undefined ? metadata?.uid : undefined;
  };
}

export class IdentityCredentials {
  readonly #options: IdentityCredentialsOptions;

  constructor(options: IdentityCredentialsOptions) {
    this.#options = options;
  }

  /**
   * Stores the keys or accounts that there are now, or removes what is stored.
   * @returns the facts for the client's next verdict
   * @throws KubernetesError and StaleReadError as VerifierSecret does: requeue
   */
  async reconcile(subject: CredentialSubject): Promise<Partial<Pick<ClientFacts, 'configMap'>>> {
    const { manifest, verdict } = subject;
    const { auth } = manifest.spec;
    if (auth.method === 'private_key_jwt' && auth.privateKeyJwt?.jwksConfigMapRef !== undefined) {
      return await this.#reconcileConfigMap(subject, auth.privateKeyJwt.jwksConfigMapRef.name);
    }
    const isByAccounts = auth.method === 'kubernetes_service_account';
    await this.#store(
      subject,
      isByAccounts ? accountCredentials(verdict.object, manifest.spec, this.#options) : undefined,
    );
    return {};
  }

  /**
   * The manifest of this reconcile applies; a change of the client during the read has a reconcile of its own. A
   * ConfigMap that was read at this version before is not read again.
   */
  async #reconcileConfigMap(
    subject: CredentialSubject,
    name: string,
  ): Promise<Partial<Pick<ClientFacts, 'configMap'>>> {
    const { api, configMaps, unchangedCheck, clientExists, clock } = this.#options;
    const { client, manifest, verdict, verifiers } = subject;
    const { namespace, uid } = client;
    const listed = configMaps.get(`${namespace}/${name}`)?.metadata.resourceVersion;
    if (verifiers.isListed && unchangedCheck.unchanged(subject, listed, clock.now()) !== undefined) return {};
    const found = await api.get(CONFIG_MAPS, { namespace, name });
    const configMap = () => found as ReferencedConfigMap | undefined;
    // The client was deleted during the read, and its verifier Secret with it: a write now would leave an orphan.
    if (!clientExists(uid)) return { configMap };
    const credentials = assertionCredentials(verdict.object, manifest.spec, { configMap, jwksOf: () => undefined });
    const stored = await this.#store(subject, credentials);
    if (found !== undefined && stored !== undefined) {
      unchangedCheck.record({ ...subject, state: stored }, found.metadata.resourceVersion);
    }
    return { configMap };
  }

  /** @returns what is stored now; undefined when nothing is */
  async #store(
    { object, verifiers }: CredentialSubject,
    credentials: Credentials | undefined,
  ): Promise<CredentialState | undefined> {
    const identity = identityOf(credentials);
    const isStored = () => verifiers.isListed && identity !== undefined && hasOnly(identity, verifiers.state);
    if (!isStored() && verifiers.isThere) await verifiers.read();
    if (isStored()) return verifiers.state;
    if (identity === undefined) {
      await verifiers.remove();
      return undefined;
    }
    const next: CredentialState = {
      ...identity,
      revision: (verifiers.state?.revision ?? 0) + 1,
      verifiers: [],
      rotatedAt: this.#options.clock.now(),
      begunAt: undefined,
      // There is no secret to rotate: requests so far are none to a secret that the client gets later.
      handled: rotationRequests(object),
    };
    await verifiers.put(next, []);
    return next;
  }
}

/** What token servers cannot read from the manifest; undefined for keys of the manifest, and where there is nothing. */
function identityOf(credentials: Credentials | undefined): StoredIdentity | undefined {
  if (credentials?.state !== 'ready') return undefined;
  const { assertion, serviceAccounts } = credentials;
  if (assertion !== undefined) return 'jwksUri' in assertion.keys ? undefined : { jwks: assertion.keys };
  return serviceAccounts && { serviceAccounts };
}

function hasOnly(identity: StoredIdentity, state: CredentialState | undefined): boolean {
  if (state?.verifiers.length !== 0) return false;
  return JSON.stringify(identityTexts(state)) === JSON.stringify(identityTexts(identity));
}
