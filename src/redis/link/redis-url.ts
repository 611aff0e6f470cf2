// Parses GRANTRY_REDIS_URL: one server, the Sentinels that know it, or the seeds of a Cluster. User, password and
// certificates come from settings of their own; credentials in the address are refused.

/** A host and its port. */
export interface RedisAddress {
  readonly host: string;
  readonly port: number;
}

/** A parsed Redis address. */
export type RedisTarget =
  | { readonly form: 'standalone'; readonly address: RedisAddress; readonly tls: boolean; readonly database: number }
  | {
      readonly form: 'sentinel';
      readonly sentinels: readonly RedisAddress[];
      readonly primary: string;
      readonly tls: boolean;
      readonly database: number;
    }
  | { readonly form: 'cluster'; readonly seeds: readonly RedisAddress[]; readonly tls: boolean };

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1)$/i;

/** Whether every server that the address names is on this machine. */
export function isOnLoopback(target: RedisTarget): boolean {
  return addressesOf(target).every(({ host }) => LOOPBACK.test(host));
}

function addressesOf(target: RedisTarget): readonly RedisAddress[] {
  switch (target.form) {
    case 'standalone':
      return [target.address];
    case 'sentinel':
      return target.sentinels;
    case 'cluster':
      return target.seeds;
  }
}

const FORMS =
  'redis://host:port, rediss://host:port, redis+sentinel://host:port,host:port/primary or redis+cluster://host:port,host:port';

/** Parts of `scheme://hosts/path`; the URL parser of the platform knows no list of hosts. */
const SHAPE = /^([a-z+]+):\/\/([^/?#]*)(?:\/([^?#]*))?([?#].*)?$/;

/**
 * Reads a Redis address. `rediss+sentinel` and `rediss+cluster` speak TLS. A standalone path is the number of the
 * database, a Sentinel path is the name of the primary, optionally followed by the number of the database.
 * @throws Error whose message says what is wrong and how to write it, to be put after the name of the variable
 */
export function parseRedisUrl(text: string): RedisTarget {
  const [, scheme = '', authority = '', path = '', rest = ''] = SHAPE.exec(text) ?? [];
  const [base, form] = scheme.split('+');
  const isKnown = (base === 'redis' || base === 'rediss') && ['sentinel', 'cluster', undefined].includes(form);
  if (!isKnown) throw new Error(`is not a Redis address: write ${FORMS}`);
  if (authority.includes('@')) {
    throw new Error(
      'holds a user name or password: put them into GRANTRY_REDIS_USERNAME and GRANTRY_REDIS_PASSWORD_FILE',
    );
  }
  if (rest !== '') throw new Error('has a query or fragment: options have variables of their own (GRANTRY_REDIS_…)');
  const tls = base === 'rediss';
  if (form === 'cluster') {
    if (path !== '')
      throw new Error('names a database, but Redis Cluster has only one: end the address after the hosts');
    return { form, seeds: addresses(authority, 6379), tls };
  }
  if (form === 'sentinel') {
    const [primary = '', database = '0', ...more] = path.split('/');
    if (!/^[A-Za-z0-9._-]+$/.test(primary) || more.length > 0) {
      throw new Error('does not name the primary: write redis+sentinel://host:port,host:port/primary');
    }
    return { form, sentinels: addresses(authority, 26379), primary, tls, database: databaseNumber(database) };
  }
  const [address, second] = addresses(authority, 6379);
  if (address === undefined || second !== undefined) {
    throw new Error('names several hosts: use redis+sentinel:// or redis+cluster:// for more than one');
  }
  return { form: 'standalone', address, tls, database: databaseNumber(path || '0') };
}

function addresses(authority: string, defaultPort: number): readonly RedisAddress[] {
  return authority.split(',').map((entry) => {
    const [, bracketed, name, port] = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?$/.exec(entry) ?? [];
    const host = bracketed ?? name;
    const number = port === undefined ? defaultPort : Number(port);
    if (host === undefined || number < 1 || number > 65_535) {
      throw new Error(`holds ${JSON.stringify(entry)}, which is not host or host:port: write ${FORMS}`);
    }
    return { host, port: number };
  });
}

function databaseNumber(text: string): number {
  if (!/^\d{1,3}$/.test(text)) throw new Error(`names the database ${JSON.stringify(text)}: it has to be a number`);
  return Number(text);
}
