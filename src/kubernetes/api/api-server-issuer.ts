// The issuer of the cluster's ServiceAccount tokens, read from the API server by its own connection: the issuer's address
// in the discovery document is often one that only the API server's clients reach.

import { type AccountIssuer, type ClusterIssuer, clusterIssuerUnavailable } from '../../oauth/ports/cluster-issuer.ts';
import type { Clock } from '../../oauth/ports/ports.ts';
import { readJwkSet, type VerificationKey } from '../../oauth/values/jwk.ts';
import { KeyCache } from '../../oauth/values/key-cache.ts';
import type { ApiClient } from './api-client.ts';
import { KubernetesError } from './kubernetes-api.ts';

const DISCOVERY = '/.well-known/openid-configuration';
const KEYS = '/openid/v1/jwks';
const FRESH_MILLISECONDS = 5 * 60_000;

/** The outcome of one read, as metrics and logs see it. */
export interface IssuerRead {
  /** `read`, or a slug of the failure. */
  readonly outcome: 'read' | 'forbidden' | 'unreachable' | 'malformed';
  /** What a failed read threw. */
  readonly error: unknown;
}

export interface ApiServerIssuerOptions {
  readonly api: Pick<ApiClient, 'document'>;
  readonly clock: Clock;
  /** Called after each read. */
  readonly onRead: (read: IssuerRead) => void;
}

interface IssuerDocument extends AccountIssuer<VerificationKey> {
  readonly freshFor: number;
}

/** {@link ClusterIssuer} of the API server. */
export class ApiServerIssuer implements ClusterIssuer<VerificationKey> {
  readonly #options: ApiServerIssuerOptions;
  readonly #cache: KeyCache<IssuerDocument>;
  readonly #reads = new Map<IssuerRead['outcome'], number>();
  #outcome: IssuerRead['outcome'] | undefined;

  constructor(options: ApiServerIssuerOptions) {
    this.#options = options;
    const unavailable = () => clusterIssuerUnavailable(this.#outcome ?? 'unreachable');
    this.#cache = new KeyCache({ clock: options.clock, read: () => this.#read(), unavailable });
  }

  current(kid: string | undefined): Promise<AccountIssuer<VerificationKey>> {
    return this.#cache.find(kid);
  }

  /** How many reads had each outcome. */
  get reads(): ReadonlyMap<IssuerRead['outcome'], number> {
    return this.#reads;
  }

  /** Why the latest read failed; undefined when it did not, or before the first. */
  get fault(): string | undefined {
    switch (this.#outcome) {
      case 'forbidden':
        return `${DISCOVERY} of the API server may not be read: bind the ClusterRole system:service-account-issuer-discovery`;
      case 'unreachable':
        return 'the API server did not answer';
      case 'malformed':
        return `${DISCOVERY} or ${KEYS} of the API server cannot be read`;
      default:
        return undefined;
    }
  }

  async #read(): Promise<IssuerDocument> {
    try {
      const document = await this.#fetch();
      this.#report({ outcome: 'read', error: undefined });
      return document;
    } catch (error) {
      this.#report({ outcome: outcomeOf(error), error });
      throw error;
    }
  }

  async #fetch(): Promise<IssuerDocument> {
    const { api } = this.#options;
    const [configuration, jwks] = await Promise.all([api.document(DISCOVERY), api.document(KEYS)]);
    const issuer = (configuration as { readonly issuer?: unknown } | null)?.issuer;
    const set = readJwkSet(jwks);
    if (typeof issuer !== 'string' || issuer === '' || typeof set === 'string' || set.keys.length === 0) {
      throw new TypeError('the issuer has no name or no usable key');
    }
    return { issuer, keys: set.keys, freshFor: FRESH_MILLISECONDS };
  }

  #report(read: IssuerRead): void {
    this.#outcome = read.outcome;
    this.#reads.set(read.outcome, (this.#reads.get(read.outcome) ?? 0) + 1);
    this.#options.onRead(read);
  }
}

function outcomeOf(error: unknown): IssuerRead['outcome'] {
  if (!(error instanceof KubernetesError)) return 'malformed';
  return error.status === 401 || error.status === 403 ? 'forbidden' : 'unreachable';
}
