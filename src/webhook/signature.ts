// Signs an alert: an HMAC over the time and the exact bytes of the body, with a secret that the receiver shares.
// docs/guides/alerts.md shows how to verify it.

import { createHmac } from 'node:crypto';

/** The name of the header. */
export const SIGNATURE_HEADER = 'grantry-signature';

/**
 * The value of the header: `t=<seconds>,v1=<hex>`, one `v1` for each secret, so that a secret can be replaced without a
 * gap: a receiver accepts when one of them is right.
 * @param timestamp seconds since the epoch, when this try was made
 */
export function signatureHeader(secrets: readonly string[], timestamp: number, body: string): string {
  const signatures = secrets.map((secret) => {
    const mac = createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex');
    return `,v1=${mac}`;
  });
  return `t=${timestamp}${signatures.join('')}`;
}
