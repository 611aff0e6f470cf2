// The audit event of an alert. The store writes the alert with the revocation and returns it; the grant type records
// the event.

import type { Alert, AuditEvent } from '../ports/audit.ts';

/** @param address where this use came from */
export function alertEvent(type: Alert['type'], alert: Alert, address: string): AuditEvent {
  const { clientId, subject, grantId } = alert;
  return { type, clientId, subject, grantId, address, alert };
}
