// Handles a change of the folder while `grantry dev` runs: serves it, reports it on the terminal and audits it.

import { clientChanges } from '../../folder-registry/client-changes.ts';
import type { ManifestRegistry, Rebuilt } from '../../folder-registry/manifest-registry.ts';
import type { FolderContents } from '../../manifests/folder.ts';
import type { ManifestFolder } from '../../manifests/manifest-folder.ts';
import type { Audit } from '../../oauth/ports/audit.ts';
import { systemClock } from '../lifecycle/machine.ts';
import type { TokenServer } from '../token-server/token-server.ts';
import type { DevPeople } from './dev-people.ts';
import { changeReport } from './dev-report.ts';

/** The served clients and the signing key at one moment. */
export interface Served {
  readonly verdicts: Rebuilt;
  /** Undefined while there is no signing key. */
  readonly signingKeyId: string | undefined;
}

export interface ChangeHandling {
  readonly registry: ManifestRegistry;
  readonly folder: ManifestFolder;
  readonly people: DevPeople;
  readonly server: Pick<TokenServer, 'audit' | 'registrySwapped'>;
  readonly stdout: NodeJS.WritableStream;
  /** The state that is served at the start. */
  readonly served: Served;
}

/** Serves each new state of the folder and reports the changes. */
export function changeHandler({ registry, folder, people, server, stdout, served }: ChangeHandling) {
  let before = served;
  return async (contents: FolderContents): Promise<number | undefined> => {
    const begin = performance.now();
    const time = new Date(systemClock.now()).toTimeString().slice(0, 8);
    const verdicts = await registry.rebuild(await folder.update(contents));
    server.registrySwapped((performance.now() - begin) / 1000);
    await people.replace(verdicts);
    const after = { verdicts, signingKeyId: registry.current.keys.signing?.kid };
    recordChanges(server.audit, before, after);
    stdout.write(changeReport(before.verdicts, verdicts, time));
    before = after;
    return verdicts.dueAt;
  };
}

/** Audits the difference of two states; all of `after` where `before` is undefined. */
export function recordChanges(audit: Audit, before: Served | undefined, after: Served): void {
  for (const { clientId, kind, reason } of clientChanges(before?.verdicts, after.verdicts)) {
    if (kind === 'refused') audit.record({ type: 'client.refused', clientId, reason });
    else if (kind === 'removed') audit.record({ type: 'client.removed', clientId });
    else audit.record({ type: 'client.accepted', clientId });
  }
  const keyId = after.signingKeyId;
  if (keyId !== undefined && keyId !== before?.signingKeyId) audit.record({ type: 'key.activated', keyId });
}
