// Computes which clients changed between two verdicts on the folder. dev-report.ts prints the changes, dev-changes.ts
// audits them.

import { hasGeneratedSecret } from '../admission/client-secrets/client-secret-manifest.ts';
import type { ClientVerdict } from '../admission/clients/admit-client.ts';
import { type ManifestVerdicts, readyOf } from './manifest-verdicts.ts';

/** The change of one client. */
export interface ClientChange {
  readonly clientId: string;
  readonly kind: 'accepted' | 'changed' | 'refused' | 'removed';
  /** The reason of a refusal. */
  readonly reason: string | undefined;
}

/** Every client that changed; all clients where `before` is undefined. */
export function clientChanges(before: ManifestVerdicts | undefined, after: ManifestVerdicts): readonly ClientChange[] {
  const known = new Map(before?.clients.map((verdict) => [verdict.object.uid, verdict]));
  const changes: ClientChange[] = [];
  for (const verdict of after.clients) {
    const earlier = known.get(verdict.object.uid);
    known.delete(verdict.object.uid);
    if (earlier !== undefined && fingerprint(earlier) === fingerprint(verdict)) continue;
    const { clientId, client } = verdict;
    if (client === undefined) {
      changes.push({ clientId, kind: 'refused', reason: readyOf(verdict).reason });
    } else {
      const kind = earlier?.client === undefined ? 'accepted' : 'changed';
      changes.push({ clientId, kind, reason: undefined });
    }
  }
  for (const { clientId } of known.values()) {
    changes.push({ clientId, kind: 'removed', reason: undefined });
  }
  return changes;
}

function fingerprint(verdict: ClientVerdict): string {
  const { client } = verdict;
  // The rotation of a generated secret is no change of the manifest; it has a line of its own.
  const isGenerated = verdict.manifest !== undefined && hasGeneratedSecret(verdict.manifest.spec);
  const verifiers = isGenerated
    ? []
    : client?.secretVerifiers.map((verifier) => Buffer.from(verifier).toString('base64'));
  return JSON.stringify([verdict.clientId, statusOf(verdict), { ...client, secretVerifiers: verifiers }]);
}

/** `Ready`, or the reason and message of the condition. */
export function statusOf(verdict: ClientVerdict): string {
  const ready = readyOf(verdict);
  return ready.status === 'True' ? 'Ready' : `${ready.reason}: ${ready.message}`;
}
