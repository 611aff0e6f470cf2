// The terminal output of `grantry dev`: at the start the served clients and a command to try, later the result of each
// change. No line ever contains a secret: commands take secrets from their files.

import type { ClientVerdict } from '../../admission/clients/admit-client.ts';
import type { Condition } from '../../admission/kinds/conditions.ts';
import { clientChanges, statusOf } from '../../folder-registry/client-changes.ts';
import type { Rebuilt } from '../../folder-registry/manifest-registry.ts';
import { type ManifestVerdicts, readyOf } from '../../folder-registry/manifest-verdicts.ts';
import { type CertificateFiles, CLIENT_DNS_NAME, CLIENT_SUBJECT } from '../../local-state/local-certificates.ts';
import { formatPlace, type ManifestFault } from '../../manifests/place.ts';
import { metadataPaths } from '../../oauth/endpoints/metadata.ts';
import type { Client } from '../../oauth/registry/client.ts';
import { issuerPath } from '../../oauth/values/issuer.ts';
import { printable } from '../log/printable.ts';

export interface StartFacts {
  readonly issuer: string;
  /** The address of the public port; the issuer may be that of another replica. */
  readonly listening: string;
  /** The address of Redis; undefined when state is in memory. */
  readonly redis: string | undefined;
  /** The address of the admin port. */
  readonly adminAddress: string;
  readonly directory: string;
  readonly verdicts: Rebuilt;
  /** The names of the users. */
  readonly usernames: readonly string[];
  /** Whether `demo` with the password `demo` is among them. */
  readonly demo: boolean;
  /** Why `.grantry/` cannot be written; undefined when it can. */
  readonly memoryReason: string | undefined;
  /** The file that holds only the secret of a client; undefined when there is none. */
  readonly secretFileOf: (verdict: ClientVerdict) => string | undefined;
  /** Where mutual TLS is, and the certificates made for it; undefined where it is off. */
  readonly mtls: { readonly url: string; readonly certificates: CertificateFiles | undefined } | undefined;
}

/** The lines printed when the server is up. */
export function startReport(facts: StartFacts): string {
  const { issuer, verdicts, memoryReason, directory } = facts;
  const { origin } = new URL(issuer);
  const lines = [
    `grantry serves the manifests in ${directory}`,
    '',
    `  Issuer    ${issuer}`,
    `  Metadata  ${origin}${metadataPaths(issuer)[0] ?? ''}`,
    ...replicaLines(facts),
    ...(facts.mtls === undefined ? [] : [`  mTLS      ${facts.mtls.url}`]),
    `  Admin     ${facts.adminAddress}/readyz`,
    `  Users     ${usersLine(facts)}`,
    ...providerLines(facts),
    '',
    ...clientTable(verdicts.clients).map((line) => `  ${line}`),
    '',
  ];
  if (memoryReason !== undefined) {
    lines.push(
      `  ${directory} cannot be written (${memoryReason}): keys and generated secrets are kept in memory only.`,
      '  They end with this process, and the secrets cannot be read: use clients with source: Existing.',
      '',
    );
  }
  lines.push(
    ...tryLines(facts),
    ...certificateLines(facts),
    ...unplacedLines(verdicts.clients),
    ...faultLines(verdicts.faults),
    ...warningLines(verdicts),
    ...verdicts.rotations,
  );
  for (const kind of verdicts.ignoredKinds) lines.push(`Ignored: ${kind}`);
  return `${lines.map(printable).join('\n').trimEnd()}\n`;
}

/** The address of Redis, and that of this process when its issuer has another port. */
function replicaLines({ issuer, listening, redis }: StartFacts): readonly string[] {
  if (redis === undefined) return [];
  const isElsewhere = new URL(listening).port !== new URL(issuer).port;
  return [
    ...(isElsewhere ? [`  Replica   ${listening} (the issuer is the one that Redis holds)`] : []),
    `  Redis     ${redis}`,
  ];
}

function usersLine({ usernames, demo, verdicts }: StartFacts): string {
  if (demo)
    return 'demo with the password demo (only while grantry listens on loopback, its issuer is on loopback too, and no users are given)';
  const isFaulty = verdicts.faults.some(({ reason }) => reason === 'InvalidUsers');
  if (usernames.length === 0 && isFaulty) return 'none: sign-in is not possible (see the fault below)';
  if (usernames.length === 0) return 'none: sign-in is not possible; add a user with --user name:password';
  return usernames.join(', ');
}

/** The accepted providers, each with the address to register there. */
function providerLines({ issuer, verdicts }: StartFacts): readonly string[] {
  const names = verdicts.providers.flatMap((verdict) =>
    refusalOf(verdict) === undefined ? [verdict.object.name] : [],
  );
  return names.map((name) => `  Provider  ${name}, with the callback address ${issuer}/login/callback/${name}`);
}

function clientTable(clients: readonly ClientVerdict[]): readonly string[] {
  if (clients.length === 0) return ['There is no OAuthClient here yet. Save one, and it is served at once.'];
  const rows = clients.map((verdict) => {
    const { auth, grantTypes } = verdict.manifest?.spec ?? {};
    return [
      verdict.clientId,
      auth?.method ?? '?',
      grantTypes?.join(' ') ?? '?',
      readyOf(verdict).status === 'True' ? 'Ready' : readyOf(verdict).reason,
    ];
  });
  const table = [['CLIENT ID', 'METHOD', 'GRANTS', 'STATUS'], ...rows];
  const widths = [0, 1, 2].map((column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  return table.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/** A command that requests a token, to paste into a shell. */
function tryLines({ issuer, verdicts, secretFileOf }: StartFacts): readonly string[] {
  for (const verdict of verdicts.clients) {
    const { client } = verdict;
    const file = secretFileOf(verdict);
    if (client === undefined || file === undefined || !client.grantTypes.includes('client_credentials')) continue;
    const scope = client.defaultScopes.length === 0 ? client.scopes[0] : undefined;
    // A client without scopes gets no token.
    if (scope === undefined && client.defaultScopes.length === 0) continue;
    const secret = `$(cat ${quoted(file)})`;
    const parts = ['curl -s'];
    if (client.authMethod === 'client_secret_basic') parts.push(`-u ${client.clientId}:"${secret}"`);
    parts.push('-d grant_type=client_credentials');
    if (client.authMethod === 'client_secret_post') {
      parts.push(`-d client_id=${client.clientId}`, `-d client_secret="${secret}"`);
    }
    if (scope !== undefined) parts.push(`--data-urlencode ${quoted(`scope=${scope}`)}`);
    return ['Try it:', '', `  ${parts.join(' ')} ${quoted(`${issuer}/token`)}`, ''];
  }
  return [];
}

/** Whether the client certificate that was made is one of the client. */
function hasMadeName({ certificate }: Client): boolean {
  if (certificate === undefined || !('name' in certificate)) return false;
  const { name, value } = certificate;
  return (name === 'sanDns' && value === CLIENT_DNS_NAME) || (name === 'subjectDn' && value === CLIENT_SUBJECT);
}

/** A command with the client certificate that was made, for the first client that it authenticates. */
function certificateLines({ issuer, verdicts, mtls }: StartFacts): readonly string[] {
  if (mtls?.certificates === undefined) return [];
  const { authority, client: own } = mtls.certificates;
  const served = verdicts.clients.flatMap(({ client }) => client ?? []);
  const client = served.find((each) => hasMadeName(each) && each.grantTypes.includes('client_credentials'));
  const files = `--cacert ${quoted(authority)} --cert ${quoted(own.certificate)} --key ${quoted(own.key)}`;
  const form = `-d grant_type=client_credentials -d client_id=${client?.clientId ?? 'CLIENT_ID'}`;
  const url = quoted(`${mtls.url}${issuerPath(issuer)}/token`);
  return [
    `With a certificate (its names are ${CLIENT_SUBJECT} and the DNS name ${CLIENT_DNS_NAME}):`,
    '',
    `  curl -s ${files} ${form} ${url}`,
    '',
  ];
}

/** A word quoted for a POSIX shell. */
function quoted(word: string): string {
  return /^[A-Za-z0-9_./:=@%+,~-]+$/.test(word) && !word.startsWith('~') ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** The conditions of clients that are not Ready although no file has a fault about them. */
function unplacedLines(clients: readonly ClientVerdict[]): readonly string[] {
  const silent = clients.filter((verdict) => verdict.faults.length === 0 && readyOf(verdict).status !== 'True');
  return silent.map((verdict) => `${verdict.clientId}: ${statusOf(verdict)}`);
}

function faultLines(faults: readonly ManifestFault[]): readonly string[] {
  return faults.map(({ place, reason, message }) => `${formatPlace(place)}: ${reason}: ${message}`);
}

function warningLines({ warnings, advisories }: ManifestVerdicts): readonly string[] {
  return [
    ...warnings.map(({ place, message }) => `${formatPlace(place)}: ignored: ${message}`),
    ...advisories.map(({ place, reason, message }) => `${formatPlace(place)}: warning: ${reason}: ${message}`),
  ];
}

/** The lines for one change of the folder; empty when it changed nothing. */
export function changeReport(before: ManifestVerdicts, after: Rebuilt, time: string): string {
  const lines = clientChanges(before, after).map(({ clientId, kind, reason }) => {
    const verb = kind === 'changed' || kind === 'removed' ? 'was' : 'is';
    // The lines of faults below name the details and places.
    return reason === undefined ? `${clientId} ${verb} ${kind}` : `${clientId} ${verb} ${kind}: ${reason}`;
  });
  lines.push(...grantLines(before, after));
  lines.push(...news(faultLines(before.faults), faultLines(after.faults)));
  const stale = news(before.staleFiles, after.staleFiles);
  lines.push(...stale.map((file) => `${file}: its last good state is served until this is mended`));
  const faulty = filesOf(after.faults);
  const healed = filesOf(before.faults).filter((file) => !faulty.includes(file) && after.files.includes(file));
  lines.push(...healed.map((file) => `${file} is good again`));
  lines.push(...news(warningLines(before), warningLines(after)));
  lines.push(...news(before.ignoredKinds, after.ignoredKinds).map((kind) => `ignored: ${kind}`));
  const keysBefore = JSON.stringify(before.keys.map(keyLine));
  if (keysBefore !== JSON.stringify(after.keys.map(keyLine))) lines.push(...after.keys.map(keyLine));
  lines.push(...news(before.providers.map(providerLine), after.providers.map(providerLine)), ...after.rotations);
  return lines.map((line) => `${time} ${printable(line)}\n`).join('');
}

/** The clients whose `ResourcesGranted` turned: an owner may grant and withdraw without a change of the client. */
function grantLines(before: ManifestVerdicts, after: ManifestVerdicts): readonly string[] {
  return after.clients.flatMap(({ object: { uid }, clientId }) => {
    const [was, is] = [before.grants.get(uid), after.grants.get(uid)];
    if (was === undefined || is === undefined || was.status === is.status) return [];
    return [`${clientId}: ResourcesGranted is ${is.status}: ${is.message}`];
  });
}

function keyLine(verdict: ManifestVerdicts['keys'][number]): string {
  const { object, accepted, manifest } = verdict;
  const name = `SigningKey ${object.namespace}/${object.name}`;
  if (accepted) return `${name} (${manifest?.spec.algorithm}) is accepted`;
  const { reason, message } = readyOf(verdict);
  return `${name} is refused: ${reason}: ${message}`;
}

function providerLine(verdict: ManifestVerdicts['providers'][number]): string {
  const { object, manifest } = verdict;
  const name = `IdentityProvider ${object.namespace}/${object.name}`;
  const refusal = refusalOf(verdict);
  if (refusal === undefined) return `${name} (${manifest?.spec.type}) is accepted`;
  return `${name} is refused: ${refusal.reason}: ${refusal.message}`;
}

/** Whether a source is reached is no fault of the folder. */
function refusalOf({ conditions }: ManifestVerdicts['providers'][number]): Condition | undefined {
  return conditions.find(({ status }) => status === 'False');
}

function news(before: readonly string[], after: readonly string[]): readonly string[] {
  return after.filter((line) => !before.includes(line));
}

function filesOf(faults: readonly ManifestFault[]): readonly string[] {
  return [...new Set(faults.map(({ place }) => place.file))];
}
