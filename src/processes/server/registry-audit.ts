// The audit events of a registry that changes: clients that are served, refused or removed, and the signing key.

import type { RegistrySwap, RegistrySync } from '../../cluster-registry/registry-sync.ts';
import type { AuditLog } from '../log/audit-log.ts';

export class RegistryAudit {
  readonly #registry: Pick<RegistrySync, 'current'>;
  #audit: AuditLog | undefined;
  #signingKeyId: string | undefined;

  constructor(registry: Pick<RegistrySync, 'current'>) {
    this.#registry = registry;
  }

  /** Records changes from now on. */
  start(audit: AuditLog): void {
    this.#audit = audit;
  }

  /** Records a swap. The first one is no event: every replica would record all clients at each start. */
  swapped({ isFirst, changes }: RegistrySwap): void {
    if (isFirst) return;
    for (const { kind, clientId, reason } of changes) {
      this.#audit?.record({ type: `client.${kind}`, clientId, reason });
    }
    this.recordSigningKey();
  }

  /** Records the key that signs, unless it is recorded already. */
  recordSigningKey(): void {
    const keyId = this.#registry.current.keys.signing?.kid;
    if (keyId === undefined || keyId === this.#signingKeyId || this.#audit === undefined) return;
    this.#signingKeyId = keyId;
    this.#audit.record({ type: 'key.activated', keyId });
  }
}
