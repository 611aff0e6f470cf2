// How ioredis is configured: it never keeps, repeats or queues a request by itself, gives up on a silent socket within
// a second, and reconnects with full jitter. Credentials are read again for every connection.

import type { ConnectionOptions as TlsOptions } from 'node:tls';
import { Redis, type RedisOptions, ReplyError } from 'ioredis';
import { AddressConnector, type ConnectorParts } from '../link/connector.ts';
import { reconnectDelay } from '../link/reconnect-delay.ts';
import type { RedisAddress, RedisTarget } from '../link/redis-url.ts';
import { SentinelConnector } from './sentinel-connector.ts';

/** The credentials for Redis, and the CA to verify its certificate with. Certificates and keys are PEM texts. */
export interface RedisCredentials {
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** The password of the Sentinels themselves. */
  readonly sentinelPassword?: string | undefined;
  readonly ca?: string | undefined;
  readonly certificate?: string | undefined;
  readonly key?: string | undefined;
}

type Options = RedisOptions & { replyMapping?: 'legacy' };

export interface ConnectionMaker {
  /** Asks the Sentinels, where there are some, whether the lasting connection still leads to the primary. Never throws. */
  verifyPrimary(): Promise<void>;
  /** A connection to one address: a lasting one reconnects by itself, another is opened by `connect()` and does not. */
  to(address: RedisAddress, lasting: boolean): Redis;
  /** The same, to the primary that the Sentinels name: to the server of the lasting connection, once there is one. */
  toPrimary(target: Extract<RedisTarget, { form: 'sentinel' }>, lasting: boolean): Redis;
}

export interface ConnectionSettings {
  readonly tls: boolean;
  readonly database: number;
  /** A socket on which a reply is overdue for so long is closed, in the handshake too; milliseconds, 1000 by default. */
  readonly socketTimeout?: number | undefined;
}

/** Makes connections. @param credentials may throw: then the last ones are used again */
export function connectionMaker(
  { tls, database, socketTimeout = SOCKET_TIMEOUT }: ConnectionSettings,
  credentials: () => RedisCredentials,
): ConnectionMaker {
  let last = credentials();
  const current = () => {
    try {
      last = credentials();
    } catch {
      // A file is being replaced; the next connection reads it again.
    }
    return last;
  };
  const parts: ConnectorParts = {
    tls: () => (tls ? tlsOptions(current()) : undefined),
    disconnectTimeout: BEHAVIOUR.disconnectTimeout,
  };
  const at = (address: RedisAddress, more: Partial<ConnectorParts> = {}): Options => ({
    ...address,
    Connector: class extends AddressConnector {
      constructor() {
        super(address, { ...parts, ...more });
      }
    },
  });
  const make = (lasting: boolean, where: (more: Partial<ConnectorParts>) => Options): Redis => {
    let isInDatabase = true;
    const redis: Redis = new Redis({
      ...BEHAVIOUR,
      socketTimeout,
      ...identity(current(), tls),
      ...where({ isFit: () => isInDatabase }),
      db: database,
      lazyConnect: !lasting,
      retryStrategy: lasting
        ? (attempt) => {
            Object.assign(redis.options, identity(current(), tls));
            return reconnectDelay(attempt);
          }
        : null,
    } satisfies Options);
    redis.on('connect', () => {
      isInDatabase = true;
    });
    redis.on('error', (error) => {
      if (isOfCommand(error, 'select')) isInDatabase = false;
    });
    return redis;
  };
  /** The connector of the lasting connection to a primary. */
  let connector: SentinelConnector | undefined;
  const toSentinel = (address: RedisAddress) => {
    const { sentinelPassword: password, ...credentials } = current();
    return new Redis({
      ...BEHAVIOUR,
      socketTimeout,
      commandTimeout: BEHAVIOUR.connectTimeout,
      enableReadyCheck: false,
      retryStrategy: null,
      ...identity({ ...credentials, username: undefined, password }, tls),
      ...at(address),
      lazyConnect: true,
    } satisfies Options);
  };
  return {
    verifyPrimary: async () => await connector?.verifyPrimary(),
    to: (address, lasting) => make(lasting, (more) => at(address, more)),
    toPrimary({ sentinels, primary }, lasting) {
      // A lease goes to the server of the lasting connection, whatever the Sentinels name at the moment.
      const reached = lasting ? undefined : connector?.address;
      if (reached !== undefined) return make(false, (more) => at(reached, more));
      return make(lasting, (more) => ({
        Connector: class extends SentinelConnector {
          constructor() {
            super({ ...parts, ...more, sentinels, primary, toSentinel, lasting });
            if (lasting) connector = this;
          }
        },
      }));
    },
  };
}

const SOCKET_TIMEOUT = 1000;

const BEHAVIOUR = {
  protocol: 2,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  connectTimeout: 500,
  disconnectTimeout: 100,
  maxLoadingRetryTime: 100,
  connectionName: 'grantry',
  disableClientInfo: true,
  // The server became a replica: find the primary. The request is refused, not repeated.
  reconnectOnError: (error) => /^(READONLY|MASTERDOWN) /.test(error.message),
} as const satisfies Options;

/** Whether a server refused this command. */
function isOfCommand(error: unknown, name: string): boolean {
  return error instanceof ReplyError && (error as { command?: { name?: unknown } }).command?.name === name;
}

function identity(credentials: RedisCredentials, tls: boolean): Options {
  return {
    ...(credentials.username === undefined ? {} : { username: credentials.username }),
    ...(credentials.password === undefined ? {} : { password: credentials.password }),
    ...(tls ? { tls: tlsOptions(credentials) } : {}),
  };
}

function tlsOptions({ ca, certificate, key }: RedisCredentials): TlsOptions {
  return {
    minVersion: 'TLSv1.2',
    ...(ca === undefined ? {} : { ca }),
    ...(certificate === undefined ? {} : { cert: certificate }),
    ...(key === undefined ? {} : { key }),
  };
}
