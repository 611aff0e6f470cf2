// What happened at the replicas, fetched from each of them every few seconds: when clients were last used, what they were
// denied and the alerts about them. It is the only way from a replica into the cluster; a replica itself writes nothing.

import { sleep } from '../../kubernetes/api/sleep.ts';
import type { KubernetesObject } from '../../kubernetes/objects/resources.ts';
import type { Clock } from '../../oauth/ports/ports.ts';
import type { EventFacts } from '../reconciling/events.ts';
import { type Denial, type ReplicaReport, replicaReportSchema } from './replica-report.ts';
import type { Replica, Replicas } from './replicas.ts';
import { type Happening, type Notice, StatusNotices } from './status-notices.ts';
import { UnacknowledgedAlerts } from './unacknowledged-alerts.ts';

const PERIOD_MILLISECONDS = 5000;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** After so long a client that the watch does not know is none. */
const UNKNOWN_MILLISECONDS = 10 * MINUTE;

/** Refusals that only a client that proved who it is can bring about, as the word in its condition. */
const DENIED: ReadonlyMap<string, string> = new Map([
  ['unauthorized_client', 'UnauthorizedClient'],
  ['invalid_scope', 'InvalidScope'],
]);
/** Anybody can bring this about: it is worth an Event and no status write. */
const REDIRECT_MISMATCH = 'redirect_uri_mismatch';

/** What an alert is called, and what it says. */
const ALERTS: ReadonlyMap<string, { readonly reason: string; readonly sentence: string }> = new Map([
  [
    'refresh_token.reuse_detected',
    {
      reason: 'RefreshTokenReuse',
      sentence: 'A refresh token that had been replaced was used again; its grant is revoked.',
    },
  ],
  [
    'authorization_code.replayed',
    { reason: 'AuthorizationCodeReplayed', sentence: 'An authorization code was used twice; its grant is revoked.' },
  ],
]);

export interface ReplicaReportsOptions {
  readonly replicas: Pick<Replicas, 'find' | 'ask'>;
  /** The living client of a uid; undefined for one that is not of this install, or goes with its namespace. */
  readonly clientOf: (uid: string) => KubernetesObject | undefined;
  readonly record: (event: EventFacts) => void;
  /** Called for each client about which there is something new. */
  readonly onNews: (client: KubernetesObject) => void;
  readonly clock: Clock;
}

export class ReplicaReports {
  readonly #options: ReplicaReportsOptions;
  readonly #denied = new StatusNotices({
    type: 'Denied',
    sentence: deniedSentence,
    pace: HOUR,
    dayBegins: 'happened',
  });
  /** An alert that nobody could be told for days is news all the same. */
  readonly #alerts = new StatusNotices({ type: 'Alert', sentence: alertSentence, pace: MINUTE, dayBegins: 'told' });
  readonly #lastUsed = new Map<string, string>();
  readonly #cursors = new Map<string, string>();
  /** By uid, then replica, then reason: what each of them counted. */
  readonly #counts = new Map<string, Map<string, Map<string, Denial>>>();
  readonly #redirectEvents = new Map<string, number>();
  readonly #reportedAlerts = new UnacknowledgedAlerts();
  readonly #stopping = new AbortController();
  readonly #begun: number;
  #running: Promise<void> | undefined;

  constructor(options: ReplicaReportsOptions) {
    this.#options = options;
    this.#begun = options.clock.now();
  }

  /** Asks again and again, until `stop`. */
  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  /** The day on which a client last got a token, `2026-01-31`; undefined when nobody told. */
  lastUsed(uid: string): string | undefined {
    return this.#lastUsed.get(uid);
  }

  /** What status has to say of what a client met with. @param before the status at the API server */
  notices(uid: string, generation: number, before: unknown): readonly Notice[] {
    const now = this.#options.clock.now();
    const told = this.#alerts.lastTold(generation, before);
    if (told !== undefined) this.#reportedAlerts.told(uid, told);
    return [this.#denied, this.#alerts].map((notices) => notices.of(uid, generation, before, now));
  }

  /** Of a client that is gone. */
  forget(uid: string): void {
    for (const map of [this.#lastUsed, this.#counts, this.#redirectEvents]) map.delete(uid);
    this.#denied.forget(uid);
    this.#alerts.forget(uid);
    this.#reportedAlerts.forget(uid);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.ask();
      await sleep(PERIOD_MILLISECONDS, signal);
    }
  }

  /** Asks every replica once. Never throws. */
  async ask(): Promise<void> {
    const replicas = this.#options.replicas.find() ?? [];
    for (const url of this.#cursors.keys()) {
      if (!replicas.some((replica) => replica.url === url)) this.#forgetReplica(url);
    }
    for (const uid of this.#reportedAlerts.uids()) if (this.#options.clientOf(uid) === undefined) this.forget(uid);
    const acknowledged = this.#reportedAlerts.due();
    const answers = await Promise.all(replicas.map((replica) => this.#askOne(replica, acknowledged)));
    if (answers.some((answer) => answer !== undefined)) this.#reportedAlerts.acknowledged(acknowledged);
    for (const [index, { url }] of replicas.entries()) {
      const report = answers[index];
      if (report !== undefined) this.#take(url, report);
    }
  }

  /** Every rollout has replicas at other addresses. */
  #forgetReplica(url: string): void {
    this.#cursors.delete(url);
    for (const [uid, counts] of this.#counts) if (counts.delete(url) && counts.size === 0) this.#counts.delete(uid);
  }

  async #askOne(replica: Replica, acknowledged: readonly string[]): Promise<ReplicaReport | undefined> {
    const now = this.#options.clock.now();
    const after = this.#cursors.get(replica.url);
    const question = { ...(after !== undefined && { after }), ...(acknowledged.length > 0 && { acknowledged }) };
    const report = await this.#options.replicas.ask(replica, '/registry/report', question, replicaReportSchema(now));
    if (report !== undefined) this.#cursors.set(replica.url, report.cursor);
    return report;
  }

  #take(replica: string, { lastUsed, denied, alerts }: ReplicaReport): void {
    const news = new Set<KubernetesObject>();
    for (const [uid, day] of Object.entries(lastUsed)) {
      const client = this.#options.clientOf(uid);
      if (client === undefined || day <= (this.#lastUsed.get(uid) ?? '')) continue;
      this.#lastUsed.set(uid, day);
      news.add(client);
    }
    for (const [uid, denials] of Object.entries(denied)) {
      const client = this.#options.clientOf(uid);
      if (client !== undefined && this.#takeDenials(client, replica, denials)) news.add(client);
    }
    for (const alert of alerts) {
      const client = this.#takeAlert(alert);
      if (client !== undefined) news.add(client);
    }
    for (const client of news) this.#options.onNews(client);
  }

  /** @returns whether status has to say something else */
  #takeDenials(client: KubernetesObject, replica: string, denials: readonly Denial[]): boolean {
    const { uid, generation: present = 1 } = client.metadata;
    let isNews = false;
    for (const denial of denials) {
      const { reason, generation, lastTime } = denial;
      const word = DENIED.get(reason);
      if (reason === REDIRECT_MISMATCH) this.#redirectMismatch(client, lastTime);
      // Of a generation before, or one that is not known, it may be mended. What is ahead of the watch counts once that is there.
      if (word === undefined || generation === undefined || generation < present) continue;
      const count = this.#countOfAll(uid, replica, denial);
      if (!this.#denied.note(uid, { reason: word, count, lastTime }, generation)) continue;
      isNews = true;
      this.#record(client, lastTime, word, `Requests of this client are refused: ${reason}.`);
    }
    return isNews;
  }

  /** Takes in what a replica counted of one reason, and adds what the others did: each tells only what changed. */
  #countOfAll(uid: string, replica: string, denial: Denial): number {
    const counts = this.#counts.get(uid) ?? new Map<string, Map<string, Denial>>();
    this.#counts.set(uid, counts);
    const ofReplica = counts.get(replica) ?? new Map<string, Denial>();
    counts.set(replica, ofReplica.set(denial.reason, denial));
    const all = [...counts.values()].flatMap((byReason) => byReason.get(denial.reason) ?? []);
    // A day after the last of it, or with another generation, a replica begins anew.
    const counted = all.filter(
      ({ generation, lastTime }) => generation === denial.generation && denial.lastTime - lastTime <= DAY,
    );
    return counted.reduce((sum, { count }) => sum + count, 0);
  }

  #redirectMismatch(client: KubernetesObject, lastTime: number): void {
    const { uid } = client.metadata;
    if (lastTime - (this.#redirectEvents.get(uid) ?? -HOUR) < HOUR) return;
    this.#redirectEvents.set(uid, lastTime);
    const note = 'A sign-in was asked for with a redirect address that is not among spec.redirectUris.';
    this.#record(client, lastTime, 'RedirectUriMismatch', note);
  }

  #takeAlert(alert: ReplicaReport['alerts'][number]): KubernetesObject | undefined {
    const { id, type, clientUid, time: lastTime } = alert;
    const kind = ALERTS.get(type);
    const client = this.#options.clientOf(clientUid);
    if (kind === undefined || client === undefined) {
      // One that the watch does not know yet will be known by then; until then it comes with each report.
      const isLost = kind === undefined || this.#options.clock.now() - lastTime > UNKNOWN_MILLISECONDS;
      if (isLost) this.#reportedAlerts.settle(id);
      return undefined;
    }
    if (!this.#reportedAlerts.take(alert)) return undefined;
    const { reason, sentence: note } = kind;
    this.#options.record({ regarding: client, type: 'Warning', reason, action: 'Revoke', note, isAlert: true });
    this.#alerts.note(clientUid, { reason, count: 1, lastTime });
    return client;
  }

  /** An Event, unless another leader saw to it: a replica tells a new one everything from its start. */
  #record(client: KubernetesObject, lastTime: number, reason: string, note: string): void {
    if (lastTime < this.#begun) return;
    this.#options.record({ regarding: client, type: 'Warning', reason, action: 'Refuse', note });
  }
}

function deniedSentence({ reason, count }: Happening): string {
  const slug = [...DENIED].find(([, word]) => word === reason)?.[0] ?? reason;
  return `${count === 1 ? 'A request' : `${count} requests`} of this client ${count === 1 ? 'was' : 'were'} refused with ${slug}.`;
}

function alertSentence({ reason }: Happening): string {
  return [...ALERTS.values()].find((kind) => kind.reason === reason)?.sentence ?? '';
}
