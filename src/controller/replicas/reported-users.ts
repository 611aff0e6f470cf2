// What the replicas report of Secrets with users: an Event about each that does not apply as a whole. The replicas alone read
// such Secrets; a controller has no hash of a password.

import { type KubernetesObject, SECRETS } from '../../kubernetes/objects/resources.ts';
import type { EventFacts } from '../reconciling/events.ts';

/** By uid of the Secret; undefined where a replica did not answer. */
export type UsersReports = Readonly<Record<string, { readonly name: string; readonly message: string }>> | undefined;

export interface ReportedUsersOptions {
  readonly releaseNamespace: string;
  readonly record: (event: EventFacts) => void;
}

export class ReportedUsers {
  readonly #options: ReportedUsersOptions;
  /** The faults with an Event, each with the uid of its Secret. */
  #recorded: ReadonlySet<string> = new Set();

  constructor(options: ReportedUsersOptions) {
    this.#options = options;
  }

  /** Records what is new. To be called after each poll. @param reports one of each replica */
  polled(reports: readonly UsersReports[]): void {
    const isSilent = reports.some((report) => report === undefined);
    const present = new Set(isSilent ? this.#recorded : []);
    for (const report of reports) {
      for (const [uid, { name, message }] of Object.entries(report ?? {})) {
        const fault = `${uid} ${message}`;
        // One Event for a fault, however many replicas report it.
        if (!present.has(fault) && !this.#recorded.has(fault)) this.#record(uid, name, message);
        present.add(fault);
      }
    }
    this.#recorded = present;
  }

  #record(uid: string, name: string, message: string): void {
    const { releaseNamespace: namespace, record } = this.#options;
    const metadata = { name, namespace, uid, resourceVersion: '', creationTimestamp: '' };
    const regarding: KubernetesObject = { apiVersion: 'v1', kind: SECRETS.kind, metadata };
    record({
      regarding,
      type: 'Warning',
      reason: 'InvalidUsers',
      action: 'Read',
      note: `Not all of it counts: ${message}.`,
    });
  }
}
