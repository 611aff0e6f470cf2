// The options of a token server: its configuration, the parts of its admin side, and what its protocol is made of.

import type { Logger } from 'pino';
import type { ReadinessCheck } from '../../http/admin/admin.ts';
import type { ClientUsage } from '../../http/admin/client-usage.ts';
import type { ReplicaApi } from '../../http/admin/controller-endpoints.ts';
import type { StoreProbe } from '../../http/metrics/metrics.ts';
import type { Followed, WatchCounters } from '../../http/metrics/watch-metrics.ts';
import type { Brand } from '../../http/pages/brand.ts';
import type { SignInOrder } from '../../http/pages/login-page.ts';
import type { HttpTimeouts } from '../../http/server/strict-fastify.ts';
import type { Blocks } from '../../login/blocks.ts';
import type { NonceRule } from '../../oauth/dpop/nonces.ts';
import type { ClusterIssuer } from '../../oauth/ports/cluster-issuer.ts';
import type { Clock, People, Random, Stores } from '../../oauth/ports/ports.ts';
import type { RegistryRef } from '../../oauth/registry/registry.ts';
import type { VerificationKey } from '../../oauth/values/jwk.ts';
import type { AddressLookup } from '../../outbound/name-lookup.ts';
import type { FetchSettings } from '../config/fetch-config.ts';
import type { MutualTls } from '../mutual-tls/mutual-tls.ts';

/** The configuration of the token server; `config.ts` reads it. */
export interface TokenServerSettings {
  readonly issuer: string;
  /** Addresses and CIDR blocks whose X-Forwarded-For is trusted. */
  readonly trustedProxies: readonly string[];
  /** False turns off every rate limit. */
  readonly rateLimits: boolean;
  /** When DPoP proofs need a nonce. */
  readonly dpopNonce: NonceRule;
  /** What the login page begins with. */
  readonly signInOrder: SignInOrder;
  readonly auditSubjects: 'hashed' | 'plain';
  /** N: one of N successful token requests is logged. */
  readonly logOneTokenIn: number;
  /** From where the key sets of clients may be fetched. */
  readonly fetch: FetchSettings;
}

/** The parts of the admin side. */
export interface AdminSideOptions {
  readonly settings: TokenServerSettings;
  readonly registry: RegistryRef;
  readonly random: Random;
  readonly log: Logger;
  /** The server behind `stores`; undefined for stores in memory. */
  readonly store?: StoreProbe;
  /** How many clients the latest validation of the manifests refused. */
  readonly refusedClients?: () => number;
  /** Log lines dropped since the start. */
  readonly logDropped?: () => number;
  /** Readiness checks in addition to the signing key and draining. */
  readonly readiness?: readonly ReadinessCheck[];
  readonly timeouts?: Partial<HttpTimeouts>;
  /** Whether to collect metrics of the process: true for one server in a process. */
  readonly processMetrics?: boolean;
  /** The watches behind the registry; undefined without a cluster. */
  readonly followed?: Followed;
  readonly watches?: WatchCounters;
  /** How often the issuer of ServiceAccount tokens was read, by outcome; undefined without a cluster. */
  readonly clusterIssuerReads?: () => ReadonlyMap<string, number>;
  /** The answers to the controller; undefined without one. */
  readonly replica?: ReplicaApi;
  /** The file that the users come from; undefined where there is none. */
  readonly usersFile?: UsersFileState;
  /** The Secrets that users come from; undefined without a cluster. */
  readonly usersSecrets?: UsersSecretsState;
}

/** What the admin port says about a users file. It never makes the process not ready: the users known so far are served. */
export interface UsersFileState {
  /** Why the file as it is now does not count, or not as a whole; undefined while it does. */
  readonly fault: string | undefined;
}

/** What the admin port says about Secrets with users. They never make the process not ready either. */
export interface UsersSecretsState {
  /** The Secrets that do not count, or not as a whole. */
  readonly faults: { readonly size: number };
  /** The first of them, and why; undefined without one. */
  readonly fault: string | undefined;
}

export interface TokenServerOptions extends AdminSideOptions {
  readonly stores: Stores;
  /** The local users. */
  readonly owners: People;
  /** The blocks in lists of users, for people of identity providers; none by default. */
  readonly blocks?: Blocks;
  readonly clock: Clock;
  /** The first one makes handles, all are accepted; at least one. */
  readonly peppers: readonly [Uint8Array, ...Uint8Array[]];
  /** Whether the credentials at identity providers are tried with a made-up code, before a person signs in; not by default. */
  readonly triesCredentials?: boolean;
  /** Of the pages. */
  readonly brand: Brand;
  /** Undefined where mutual TLS is off. */
  readonly mutualTls?: MutualTls | undefined;
  /** Of the hosts that clients name. Default: that of the hosts file and the name servers. */
  readonly lookup?: AddressLookup;
  /** The issuer of ServiceAccount tokens. */
  readonly clusterIssuer: ClusterIssuer<VerificationKey>;
  /** Records issued tokens and refusals for the controller; undefined without one. */
  readonly usage?: ClientUsage;
}
