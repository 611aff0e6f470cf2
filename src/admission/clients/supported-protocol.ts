// The parts of the protocol that an install offers, which a manifest may name: from the protocol's tables and settings.

import { availableMethods } from '../../oauth/client-auth/index.ts';
import { GRANT_TYPES } from '../../oauth/grants/index.ts';

/** What a manifest is judged by beside its own text. */
export interface SupportedProtocol {
  /** Undefined where it is not known: then no audience is compared with it. */
  readonly issuer: string | undefined;
  readonly supportedGrantTypes: readonly string[];
  readonly supportedAuthMethods: readonly string[];
  readonly supportedSenderConstraints: readonly string[];
}

/** The settings that decide what is offered. */
export interface ProtocolSettings {
  readonly issuer: string | undefined;
  /** Whether mutual TLS is turned on; where that is not known (`check`), it is assumed. */
  readonly mutualTls: boolean;
}

/** What an install with these settings offers. */
export function supportedProtocol({ issuer, mutualTls }: ProtocolSettings): SupportedProtocol {
  return {
    issuer,
    supportedGrantTypes: [...GRANT_TYPES.keys()],
    supportedAuthMethods: [...availableMethods({ mutualTls }).keys()],
    supportedSenderConstraints: ['None', ...(mutualTls ? ['MutualTLS'] : [])],
  };
}
