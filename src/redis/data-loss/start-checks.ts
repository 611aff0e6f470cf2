// Checks whether the servers are configured to keep state, and to keep others out of it. It reads INFO: managed Redis
// forbids CONFIG GET.

import type { ManagedConnection, ServerInfo } from '../connection/connection.ts';
import { RedisKeys } from '../connection/keys.ts';
import { isOnLoopback, type RedisTarget } from '../link/redis-url.ts';
import type { Acknowledgement } from '../scripts/script-runner.ts';

/** One fault of a server's configuration: a loud warning, and with GRANTRY_REDIS_STRICT a reason not to start. */
export interface RedisFinding {
  /** For metrics. */
  readonly reason:
    | 'wrong_mode'
    | 'old_version'
    | 'eviction_policy'
    | 'no_append_only_file'
    | 'no_acknowledgement'
    | 'too_few_replicas'
    | 'no_password'
    | 'no_tls';
  readonly server: string;
  /** The fault, what it may cost and its remedy; names the variable. */
  readonly message: string;
  /** Grantry cannot work with it: the start is refused whether strict or not. */
  readonly isFatal: boolean;
}

/** The configuration that servers are checked against. */
export interface RedisExpectation {
  readonly target: RedisTarget;
  readonly acknowledgement: Acknowledgement | undefined;
  /** With neither of the two, grantry itself does not authenticate. */
  readonly passwordFile: string | undefined;
  readonly certificateFile: string | undefined;
  /** Of the keys. */
  readonly prefix: string;
}

/** Checks each primary once. */
export class StartChecks {
  readonly #connection: ManagedConnection;
  readonly #expected: RedisExpectation;
  readonly #checked = new Set<string>();
  readonly #findings: RedisFinding[] = [];

  constructor(connection: ManagedConnection, expected: RedisExpectation) {
    this.#connection = connection;
    this.#expected = expected;
  }

  /** All findings so far. */
  get findings(): readonly RedisFinding[] {
    return this.#findings;
  }

  /**
   * @returns the findings about the primaries that answer now and did not answer before
   * @throws StoreUnavailableError where none answers, and where the ACL forbids INFO
   */
  async check(): Promise<readonly RedisFinding[]> {
    const answers = (await this.#connection.info()).filter(({ server }) => !this.#checked.has(server));
    for (const { server } of answers) this.#checked.add(server);
    const found = await Promise.all(
      answers.map(async (info) => validateServer({ ...info, isOpen: await this.#isOpen(info) }, this.#expected)),
    );
    this.#findings.push(...found.flat());
    return found.flat();
  }

  /** Whether the server serves clients without a password. One that asks for a certificate is not asked. */
  async #isOpen({ server }: ServerInfo): Promise<boolean> {
    const { target, passwordFile, certificateFile, prefix } = this.#expected;
    if (isOnLoopback(target) || certificateFile !== undefined) return false;
    if (passwordFile === undefined) return true;
    return await this.#connection.admitsUnauthenticated(server, new RedisKeys(prefix).issuer());
  }
}

interface ObservedServer extends ServerInfo {
  readonly isOpen: boolean;
}

/** The findings about one server. @param observed its INFO, and whether it serves clients without a password */
export function validateServer(
  { server, text, isOpen }: ObservedServer,
  expected: RedisExpectation,
): readonly RedisFinding[] {
  const facts = readInfo(text);
  return CHECKS.flatMap(({ reason, fault, isFatal = false }) => {
    const found = fault(facts, { ...expected, isOpen });
    return found === undefined ? [] : [{ reason, server, isFatal, message: `Redis at ${server} ${found}` }];
  });
}

type Facts = Readonly<Record<string, string>>;

interface Check {
  readonly reason: RedisFinding['reason'];
  readonly isFatal?: boolean;
  /** The rest of a sentence that begins with the server. @param facts its INFO */
  readonly fault: (facts: Facts, around: RedisExpectation & Pick<ObservedServer, 'isOpen'>) => string | undefined;
}

/** The oldest major version that is supported. */
const OLDEST = 7;

const CHECKS: readonly Check[] = [
  {
    reason: 'wrong_mode',
    isFatal: true,
    fault({ redis_mode }, { target }) {
      if (redis_mode === 'sentinel') {
        return 'is a Sentinel: write GRANTRY_REDIS_URL as redis+sentinel://host:port,host:port/primary';
      }
      return redis_mode === 'cluster' && target.form !== 'cluster'
        ? 'is part of a Cluster: write GRANTRY_REDIS_URL as redis+cluster://host:port,host:port'
        : undefined;
    },
  },
  {
    reason: 'old_version',
    fault: ({ redis_version = '' }) =>
      Number.parseInt(redis_version, 10) < OLDEST
        ? `has version ${redis_version}: grantry is made for ${OLDEST} and later; upgrade it or point GRANTRY_REDIS_URL to a newer one`
        : undefined,
  },
  {
    reason: 'eviction_policy',
    fault: ({ maxmemory_policy = 'noeviction' }) =>
      maxmemory_policy === 'noeviction'
        ? undefined
        : `has the maxmemory-policy ${maxmemory_policy} and may forget revocations when memory is short: set maxmemory-policy to noeviction, or point GRANTRY_REDIS_URL to a Redis that is no cache`,
  },
  {
    reason: 'no_append_only_file',
    fault: ({ aof_enabled }) =>
      aof_enabled === '0'
        ? 'keeps no append-only file and is empty after a restart: set appendonly to yes, or point GRANTRY_REDIS_URL to a Redis that has one'
        : undefined,
  },
  {
    reason: 'no_acknowledgement',
    fault: ({ connected_slaves = '0' }, { target, acknowledgement }) =>
      acknowledgement === undefined && (target.form === 'sentinel' || connected_slaves !== '0')
        ? 'has replicas, but none has to acknowledge a write, so that a fail-over may lose the last ones: set GRANTRY_REDIS_WAIT, such as 1:100'
        : undefined,
  },
  {
    reason: 'too_few_replicas',
    fault: ({ connected_slaves = '0' }, { acknowledgement }) =>
      acknowledgement !== undefined && Number(connected_slaves) < acknowledgement.replicas
        ? `has ${connected_slaves} replicas now, but GRANTRY_REDIS_WAIT asks for ${acknowledgement.replicas}: until there are so many, sign-ins and refreshes are refused`
        : undefined,
  },
  {
    reason: 'no_password',
    fault: (_, { isOpen }) =>
      isOpen
        ? 'serves clients without a password, so that any process that reaches it can read state and lift revocations: set requirepass, or switch the user default off beside a user of grantry, and set GRANTRY_REDIS_PASSWORD_FILE'
        : undefined,
  },
  {
    reason: 'no_tls',
    fault: (_, { target }) =>
      target.tls || isOnLoopback(target)
        ? undefined
        : 'is reached without TLS, so that its network can read and change state: give it a certificate, and write GRANTRY_REDIS_URL with rediss for redis',
  },
];

function readInfo(text: string): Facts {
  return Object.fromEntries(
    text.split('\r\n').flatMap((line) => {
      const [, name, value] = /^([a-z0-9_]+):(.*)$/.exec(line) ?? [];
      return name === undefined || value === undefined ? [] : [[name, value]];
    }),
  );
}
