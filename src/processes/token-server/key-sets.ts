// Assembles what fetches the key sets of clients: the guarded fetch with the networks and authorities of the
// configuration, and the cache; every fetch is counted, and what changes is logged.

import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Logger } from 'pino';
import type { Metrics } from '../../http/metrics/metrics.ts';
import type { KeySets } from '../../oauth/ports/key-sets.ts';
import type { Clock } from '../../oauth/ports/ports.ts';
import type { VerificationKey } from '../../oauth/values/jwk.ts';
import { faultMembers } from '../../outbound/fetch-faults.ts';
import { GuardedFetch } from '../../outbound/guarded-fetch.ts';
import { PublishedKeySets } from '../../outbound/key-sets.ts';
import type { AddressLookup } from '../../outbound/name-lookup.ts';
import type { FetchReport } from '../../outbound/published-set.ts';
import { ReachableAddresses } from '../../outbound/reachable-addresses.ts';
import type { FetchSettings } from '../config/fetch-config.ts';
import { StartError } from '../config/start-error.ts';

export interface KeySetsOptions {
  readonly settings: FetchSettings;
  /** Default: that of the hosts file and the name servers. */
  readonly lookup?: AddressLookup | undefined;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/** The key sets of all clients of a token server. @throws StartError for a file of authorities that cannot be used */
export function assembleKeySets({ settings, lookup, clock, metrics, log }: KeySetsOptions): KeySets<VerificationKey> {
  return new PublishedKeySets({
    fetch: guardedFetch(settings, lookup),
    clock,
    onFetch: (report) => {
      metrics.keySetFetches.inc({ outcome: report.outcome });
      if (report.isNews) logChange(report, log);
    },
  });
}

/** What calls hosts that clients name; each has slots of its own. @throws StartError as {@link assembleKeySets} */
export function guardedFetch({ networks, caFile }: FetchSettings, lookup?: AddressLookup): GuardedFetch {
  const authorities = caFile === undefined ? undefined : authoritiesIn(caFile);
  return new GuardedFetch({ reachable: new ReachableAddresses(networks), authorities, lookup });
}

function logChange({ host, outcome, error }: FetchReport, log: Logger): void {
  if (outcome === 'fetched') log.info({ host }, 'the key set of a client is fetched again');
  else log.warn({ host, outcome, ...faultMembers(error) }, 'the key set of a client cannot be fetched');
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** The certificates in a file, as PEM. */
function authoritiesIn(file: string): string {
  const certificates = read(file).match(CERTIFICATE) ?? [];
  if (certificates.length === 0) throw unusable(file, 'holds no certificate in PEM');
  for (const [index, certificate] of certificates.entries()) {
    try {
      new X509Certificate(certificate);
    } catch {
      throw unusable(file, `holds a certificate that cannot be read: number ${index + 1}`);
    }
  }
  return certificates.join('\n');
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw unusable(file, `cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

function unusable(file: string, fault: string): StartError {
  return new StartError(`GRANTRY_FETCH_CA_FILE: ${file} ${fault}`, 2);
}
