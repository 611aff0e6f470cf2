// Polls every replica every few seconds for its report: when clients were last used, which requests were denied, and
// alerts, which come as denials do. This is the only path from a replica into the cluster; a replica itself writes nothing.

import { sleep } from '../../kubernetes/api/sleep.ts';
import type { KubernetesObject } from '../../kubernetes/objects/resources.ts';
import { REPORTED_REFUSALS } from '../../oauth/client-auth/reported-refusals.ts';
import type { Clock } from '../../oauth/ports/ports.ts';
import type { EventFacts } from '../reconciling/events.ts';
import { type Denial, type ReplicaReport, replicaReportSchema } from './replica-report.ts';
import type { Replica, Replicas } from './replicas.ts';
import { ReportedProviders } from './reported-providers.ts';
import { ReportedUsers } from './reported-users.ts';
import { type Notice, type Occurrence, StatusNotices } from './status-notices.ts';

const PERIOD_MILLISECONDS = 5000;
/** The least time between two polls. */
const SHORTEST_PERIOD_MILLISECONDS = 100;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/**
 * Refusals that only the client itself can cause, by authenticating or by its signature, with the reason of their
 * condition: `invalid_scope` is `InvalidScope`.
 */
const DENIED: ReadonlyMap<string, string> = new Map(
  ['unauthorized_client', 'invalid_scope', ...REPORTED_REFUSALS].map((slug) => [
    slug,
    slug.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase()),
  ]),
);
/** What becomes an Event, once an hour, and no status write: the one takes no authentication, the other is no refusal. */
const EVENTS_ALONE: ReadonlyMap<string, Pick<EventFacts, 'reason' | 'action' | 'note'>> = new Map([
  [
    'redirect_uri_mismatch',
    {
      reason: 'RedirectUriMismatch',
      action: 'Refuse',
      note: 'A sign-in was asked for with a redirect address that is not among spec.redirectUris.',
    },
  ],
  [
    'groups_omitted',
    {
      reason: 'GroupsOmitted',
      action: 'Omit',
      note: 'The groups of a person take more than 4 KiB: ID tokens of this client are without them. spec.groups narrows them; userinfo has them.',
    },
  ],
]);

/** The reason and message of each type of alert. */
const ALERTS: ReadonlyMap<string, { readonly reason: string; readonly sentence: string }> = new Map([
  [
    'refresh_token.reuse_detected',
    {
      reason: 'RefreshTokenReuse',
      sentence: 'A refresh token that had been replaced was used again; its grant is revoked.',
    },
  ],
  [
    'refresh_token.retried_elsewhere',
    {
      reason: 'RefreshTokenRetriedElsewhere',
      sentence: 'Refresh tokens of a grant were retried from other networks three times in a row; it is not revoked.',
    },
  ],
  [
    'authorization_code.replayed',
    { reason: 'AuthorizationCodeReplayed', sentence: 'An authorization code was used twice; its grant is revoked.' },
  ],
]);

export interface ReplicaReportsOptions {
  readonly replicas: Pick<Replicas, 'find' | 'ask'>;
  /** The client of a uid; undefined when it was deleted, is not of this install, or its namespace is terminating. */
  readonly clientOf: (uid: string) => KubernetesObject | undefined;
  readonly releaseNamespace: string;
  readonly record: (event: EventFacts) => void;
  /** Called for each client about which a replica reported something new. */
  readonly onChange: (client: KubernetesObject) => void;
  readonly clock: Clock;
}

export class ReplicaReports {
  /** What the replicas report of IdentityProviders. */
  readonly providers = new ReportedProviders();
  readonly #options: ReplicaReportsOptions;
  readonly #denied = new StatusNotices({
    type: 'Denied',
    sentence: deniedSentence,
    pace: HOUR,
  });
  readonly #alerts = new StatusNotices({ type: 'Alert', sentence: alertSentence, pace: MINUTE });
  readonly #lastUsed = new Map<string, string>();
  readonly #cursors = new Map<string, string>();
  /** By uid, then replica, then reason: the count of each replica. */
  readonly #counts = new Map<string, Map<string, Map<string, Denial>>>();
  /** By uid, then reason: when the last of {@link EVENTS_ALONE} was. */
  readonly #lastEvents = new Map<string, Map<string, number>>();
  readonly #users: ReportedUsers;
  readonly #stopping = new AbortController();
  readonly #begun: number;
  #running: Promise<void> | undefined;

  constructor(options: ReplicaReportsOptions) {
    this.#options = options;
    this.#users = new ReportedUsers(options);
    this.#begun = options.clock.now();
  }

  /** Polls until `stop`. */
  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  /** The day on which a client last got a token, `2026-01-31`; undefined when no replica reported one. */
  lastUsed(uid: string): string | undefined {
    return this.#lastUsed.get(uid);
  }

  /**
   * The notices for the status of a client.
   * @param before the status at the API server
   */
  notices(uid: string, generation: number, before: unknown): readonly Notice[] {
    const now = this.#options.clock.now();
    return [this.#denied, this.#alerts].map((notices) => notices.of(uid, generation, before, now));
  }

  /** Drops what is known of a client that was deleted. */
  forget(uid: string): void {
    for (const map of [this.#lastUsed, this.#counts, this.#lastEvents]) map.delete(uid);
    this.#denied.forget(uid);
    this.#alerts.forget(uid);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const hurry = new AbortController();
      this.providers.onHurry(() => hurry.abort());
      await this.poll();
      await sleep(SHORTEST_PERIOD_MILLISECONDS, signal);
      await sleep(PERIOD_MILLISECONDS - SHORTEST_PERIOD_MILLISECONDS, AbortSignal.any([signal, hurry.signal]));
    }
  }

  /** Polls every replica once. Never throws. */
  async poll(): Promise<void> {
    const found = this.#options.replicas.find();
    const replicas = found ?? [];
    for (const url of this.#cursors.keys()) {
      if (!replicas.some((replica) => replica.url === url)) this.#forgetReplica(url);
    }
    const answers = await Promise.all(replicas.map((replica) => this.#pollOne(replica)));
    for (const [index, { url }] of replicas.entries()) {
      const report = answers[index];
      if (report !== undefined) this.#ingest(url, report);
    }
    this.#users.polled(replicas.map((_, index) => answers[index] && (answers[index].users ?? {})));
    const reports = replicas.map(({ name }, index) => ({ name, providers: providersIn(answers[index]) }));
    this.providers.polled(found === undefined ? 'NotObserved' : reports);
  }

  /** After a rollout the replicas have other addresses. */
  #forgetReplica(url: string): void {
    this.#cursors.delete(url);
    for (const [uid, counts] of this.#counts) if (counts.delete(url) && counts.size === 0) this.#counts.delete(uid);
  }

  async #pollOne(replica: Replica): Promise<ReplicaReport | undefined> {
    const now = this.#options.clock.now();
    const after = this.#cursors.get(replica.url);
    const request = { ...(after !== undefined && { after }) };
    const report = await this.#options.replicas.ask(replica, '/registry/report', request, replicaReportSchema(now));
    if (report !== undefined) this.#cursors.set(replica.url, report.cursor);
    return report;
  }

  #ingest(replica: string, { lastUsed, denied }: ReplicaReport): void {
    const changed = new Set<KubernetesObject>();
    for (const [uid, day] of Object.entries(lastUsed)) {
      const client = this.#options.clientOf(uid);
      if (client === undefined || day <= (this.#lastUsed.get(uid) ?? '')) continue;
      this.#lastUsed.set(uid, day);
      changed.add(client);
    }
    for (const [uid, denials] of Object.entries(denied)) {
      const client = this.#options.clientOf(uid);
      if (client !== undefined && this.#ingestDenials(client, replica, denials)) changed.add(client);
    }
    for (const client of changed) this.#options.onChange(client);
  }

  /** @returns whether the status of the client is to change */
  #ingestDenials(client: KubernetesObject, replica: string, denials: readonly Denial[]): boolean {
    const { uid, generation: present = 1 } = client.metadata;
    let isChanged = false;
    for (const denial of denials.toSorted((one, other) => one.lastTime - other.lastTime)) {
      const { reason: slug, generation, lastTime } = denial;
      this.#recordAlone(client, slug, lastTime);
      const alert = ALERTS.get(slug);
      const reason = alert?.reason ?? DENIED.get(slug);
      // One of an earlier or unknown generation may be fixed already. One ahead of the cache applies once that caught up.
      if (reason === undefined || generation === undefined || generation < present) continue;
      const notices = alert === undefined ? this.#denied : this.#alerts;
      const count = this.#countOfAll(uid, replica, denial);
      if (!notices.note(uid, { reason, count, lastTime, generation })) continue;
      isChanged = true;
      if (alert === undefined) {
        this.#record(client, lastTime, {
          reason,
          action: 'Refuse',
          note: `Requests of this client are refused: ${slug}.`,
        });
      } else if (lastTime >= this.#begun || !notices.isReported(client.status, generation, lastTime)) {
        // A former leader that wrote no status recorded no Event either. What this one wrote may be of another reason.
        const event = { type: 'Warning', reason, action: 'Revoke', note: alert.sentence, isAlert: true } as const;
        this.#options.record({ regarding: client, ...event });
      }
    }
    return isChanged;
  }

  /**
   * Stores a replica's count for one reason and sums it with the others': a replica reports only counts that changed.
   */
  #countOfAll(uid: string, replica: string, denial: Denial): number {
    const counts = this.#counts.get(uid) ?? new Map<string, Map<string, Denial>>();
    this.#counts.set(uid, counts);
    const ofReplica = counts.get(replica) ?? new Map<string, Denial>();
    counts.set(replica, ofReplica.set(denial.reason, denial));
    const all = [...counts.values()].flatMap((byReason) => byReason.get(denial.reason) ?? []);
    // A replica resets its count a day after the last denial, or with another generation.
    const counted = all.filter(
      ({ generation, lastTime }) => generation === denial.generation && denial.lastTime - lastTime <= DAY,
    );
    return counted.reduce((sum, { count }) => sum + count, 0);
  }

  #recordAlone(client: KubernetesObject, slug: string, lastTime: number): void {
    const event = EVENTS_ALONE.get(slug);
    if (event === undefined) return;
    const { uid } = client.metadata;
    const lastEvents = this.#lastEvents.get(uid) ?? new Map<string, number>();
    if (lastTime - (lastEvents.get(slug) ?? -HOUR) < HOUR) return;
    this.#lastEvents.set(uid, lastEvents.set(slug, lastTime));
    this.#record(client, lastTime, event);
  }

  /** Records an Event, unless a former leader did: a replica reports to a new leader everything since its own start. */
  #record(client: KubernetesObject, lastTime: number, event: Pick<EventFacts, 'reason' | 'action' | 'note'>): void {
    if (lastTime >= this.#begun) this.#options.record({ regarding: client, type: 'Warning', ...event });
  }
}

/** Undefined where the replica did not answer. */
function providersIn(report: ReplicaReport | undefined) {
  return report && new Map(Object.entries(report.providers ?? {}));
}

function deniedSentence({ reason, count }: Occurrence): string {
  const slug = [...DENIED].find(([, word]) => word === reason)?.[0] ?? reason;
  return `${count === 1 ? 'A request' : `${count} requests`} of this client ${count === 1 ? 'was' : 'were'} refused with ${slug}.`;
}

function alertSentence({ reason }: Occurrence): string {
  return [...ALERTS.values()].find((kind) => kind.reason === reason)?.sentence ?? '';
}
