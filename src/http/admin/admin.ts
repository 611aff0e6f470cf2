// The admin port: liveness, readiness with one line for each check, and metrics. Never on the public port.

import type { Metrics } from '../metrics/metrics.ts';
import type { Endpoint } from '../server/endpoint.ts';

/** One line of readiness. */
export interface ReadinessCheck {
  readonly name: string;
  /** Undefined when the check passes, else the fault in words for a person. */
  readonly fault: () => string | undefined;
  /** Whether a fault makes the process not ready; default true. */
  readonly required?: boolean;
}

export function adminEndpoints({
  checks,
  metrics,
}: {
  readonly checks: readonly ReadinessCheck[];
  readonly metrics: Pick<Metrics, 'contentType' | 'text'>;
}): readonly Endpoint[] {
  const shared = { answers: 'json', cors: 'none', head: true } as const;
  return [
    {
      route: 'livez',
      path: '/livez',
      ...shared,
      handlers: {
        GET: async ({ reply }) => {
          reply.type('text/plain; charset=utf-8').send('ok\n');
        },
      },
    },
    {
      route: 'readyz',
      path: '/readyz',
      ...shared,
      handlers: {
        GET: async ({ reply, log }) => {
          const faults = checks.map(({ name, fault, required = true }) => ({ name, fault: fault(), required }));
          const lines = faults.map(({ name, fault }) => `${name}: ${fault ?? 'ok'}\n`);
          const missing = faults.filter(({ fault, required }) => required && fault !== undefined);
          log.outcome = missing.length === 0 ? 'ready' : 'not_ready';
          if (missing.length > 0) log.reason = missing.map(({ name }) => name.replaceAll(' ', '_')).join(',');
          reply
            .code(missing.length === 0 ? 200 : 503)
            .type('text/plain; charset=utf-8')
            .send(lines.join(''));
        },
      },
    },
    {
      route: 'metrics',
      path: '/metrics',
      ...shared,
      handlers: {
        GET: async ({ reply }) => {
          reply.type(metrics.contentType).send(await metrics.text());
        },
      },
    },
  ];
}
