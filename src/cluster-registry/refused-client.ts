// What a token server caches of a client that its own manifest refuses: the reasons, and what its claims need. No other
// object can mend such a client, and a namespace may hold any number of them.

import { type ClientReading, ownOf, specOf } from '../admission/clients/client-reader.ts';
import { clientFaults, ownFieldFaults, type SupportedProtocol } from '../admission/clients/client-rules.ts';
import type { Fault } from '../admission/kinds/conditions.ts';
import { API_VERSION, readManifest } from '../admission/kinds/manifest.ts';
import { OAUTH_CLIENT, type OAuthClientSpec } from '../admission/kinds/oauth-client.ts';

/** A manifest as it is cached. */
export interface CachedReading {
  readonly reading: ClientReading;
  /** The result of `clientFaults`, one fault of each reason and without its message. */
  readonly ruleFaults: readonly Fault[];
}

const NONE: readonly Fault[] = [];

/** Applies the rules of the protocol to many manifests, each once. */
export class RuleCheck {
  readonly #supported: SupportedProtocol;
  /** The shared specs that break no rule. */
  readonly #sound = new WeakSet<OAuthClientSpec>();

  constructor(supported: SupportedProtocol) {
    this.#supported = supported;
  }

  /** The reading as it is; of a manifest that is refused only the claims and the reasons. */
  cached(reading: ClientReading): CachedReading {
    if (reading.shared === undefined) {
      return { reading: { shared: undefined, faults: reasonsOf(reading.faults) }, ruleFaults: NONE };
    }
    const { shared } = reading;
    const faults = this.#sound.has(shared)
      ? ownFieldFaults(
          {
            clientId: ownOf(reading, 'clientId'),
            grantTypes: shared.grantTypes,
            scopes: shared.scopes,
            redirectUris: ownOf(reading, 'redirectUris'),
            postLogoutRedirectUris: ownOf(reading, 'postLogoutRedirectUris'),
            backchannelLogoutUri: ownOf(reading, 'backchannelLogoutUri'),
          },
          this.#supported,
        )
      : clientFaults(specOf(reading), this.#supported);
    if (faults.length > 0) return { reading: { shared: claimsOf(specOf(reading)) }, ruleFaults: reasonsOf(faults) };
    this.#sound.add(shared);
    return { reading, ruleFaults: NONE };
  }
}

const DEFAULTS = readManifest(OAUTH_CLIENT.ignore, {
  apiVersion: API_VERSION,
  kind: 'OAuthClient',
  metadata: { name: 'any' },
  spec: { auth: { clientSecret: {} } },
}).manifest?.spec;

/**
 * The fields that decide which id and which Secret a refused client claims. Whether it may have an id of its own is a
 * matter of the policies, which read all fields but the details of `auth`.
 */
function claimsOf(spec: OAuthClientSpec): OAuthClientSpec {
  if (DEFAULTS === undefined) return spec;
  const { clientId, suspended, auth } = spec;
  const { clientSecret, ...noSecret } = DEFAULTS.auth;
  const secret =
    auth.clientSecret && clientSecret
      ? { ...clientSecret, source: auth.clientSecret.source, secretName: auth.clientSecret.secretName }
      : undefined;
  return {
    ...(clientId === undefined ? DEFAULTS : spec),
    clientId,
    suspended,
    auth: { ...noSecret, method: auth.method, ...(secret !== undefined && { clientSecret: secret }) },
  };
}

/**
 * One for each reason: there may be any number of refused clients. No policy has a fault at this path, which would then
 * be left out (admit-client.ts).
 */
const BARE = new Map<string, Fault>();

function reasonsOf(faults: readonly Fault[]): readonly Fault[] {
  return [...new Set(faults.map(({ reason }) => reason))].map((reason) => {
    const known = BARE.get(reason) ?? { reason, path: ['spec'], message: '' };
    BARE.set(reason, known);
    return known;
  });
}
