// The audit event of an alert: the stores raise it with the revocation, the grant that hears of it reports it.

import type { Alert, AuditEvent } from '../ports/audit.ts';

/** @param address where this use came from */
export function alertEvent(type: Alert['type'], alert: Alert, address: string): AuditEvent {
  const { clientId, subject, grantId } = alert;
  return { type, clientId, subject, grantId, address, alert };
}
