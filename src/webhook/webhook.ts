// Posts a body to a receiver once: signed, bounded in time, without following a redirect, reading only the status of
// the answer. The caller decides when to retry. docs/guides/alerts.md shows how a receiver verifies the signature.

import { createHmac } from 'node:crypto';
import { withDeadline } from '../oauth/ports/deadline.ts';
import type { Clock } from '../oauth/ports/ports.ts';

/** How long a receiver may take to answer, in milliseconds. */
const LIMIT = 5000;
const SIGNATURE_HEADER = 'grantry-signature';

export interface WebhookOptions {
  readonly url: string;
  /** Called at every try, so that a replaced file takes effect; at least one. May throw. */
  readonly secrets: () => readonly string[];
  readonly clock: Clock;
  /** Milliseconds; default 5000. */
  readonly limit?: number;
}

/** The outcome of one try; the fault is a slug. */
export type WebhookAnswer = { readonly accepted: true } | { readonly accepted: false; readonly fault: string };

export class Webhook {
  readonly #options: WebhookOptions;

  constructor(options: WebhookOptions) {
    this.#options = options;
  }

  /** Posts JSON once; an answer of 2xx accepts it. Never rejects. */
  async post(body: string): Promise<WebhookAnswer> {
    const signal = AbortSignal.timeout(this.#options.limit ?? LIMIT);
    try {
      const { ok, status } = await withDeadline(signal, this.#send(body, signal));
      return ok ? { accepted: true } : { accepted: false, fault: `status_${status}` };
    } catch (error) {
      return { accepted: false, fault: faultOf(error) };
    }
  }

  async #send(body: string, signal: AbortSignal): Promise<Response> {
    const { url, secrets, clock } = this.#options;
    const timestamp = Math.floor(clock.now() / 1000);
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': 'grantry',
        [SIGNATURE_HEADER]: signatureHeader(secrets(), timestamp, body),
      },
      body,
      redirect: 'manual',
      signal,
    });
    // The answer is not read: it may be endless.
    await response.body?.cancel().catch(() => {});
    return response;
  }
}

function faultOf(error: unknown): string {
  if (!(error instanceof Error)) return 'failed';
  if (error.name === 'TimeoutError') return 'timeout';
  const { code } = (error.cause ?? error) as NodeJS.ErrnoException;
  return typeof code === 'string' ? code.toLowerCase() : 'failed';
}

/**
 * The signature: an HMAC over the time and the exact bytes of the body, as `t=<seconds>,v1=<hex>`, one `v1` for each secret, so that a secret can be replaced without a
 * gap: a receiver accepts when one of them is right.
 * @param timestamp seconds since the epoch, when this try was made
 */
function signatureHeader(secrets: readonly string[], timestamp: number, body: string): string {
  const signatures = secrets.map((secret) => {
    const mac = createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex');
    return `,v1=${mac}`;
  });
  return `t=${timestamp}${signatures.join('')}`;
}
