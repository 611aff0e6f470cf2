// The GRANTRY_ALERT_WEBHOOK_ variables: the address that alerts are posted to, and the secret that signs them.
// `config.ts` reads them together with all others.

import { z } from 'zod';

/** The schema of each variable, with its description. */
export const WEBHOOK_VARIABLES = {
  GRANTRY_ALERT_WEBHOOK_URL: z
    .string()
    .superRefine((text, context) => {
      const message = webhookFault(text);
      if (message) context.addIssue({ code: 'custom', message });
    })
    .optional()
    .describe('Where alerts are posted: https, or http on loopback. Needs Redis, which keeps them until they arrived.'),
  GRANTRY_ALERT_WEBHOOK_SECRET_FILE: z
    .string()
    .min(1)
    .optional()
    .describe(
      'A file with the secret that alerts are signed with, at least 32 characters. Read again at every try. Unset in a cluster: that of the Secret `grantry-webhook`, which the controller makes unless this is set for it too.',
    ),
} as const;

type Variable = keyof typeof WEBHOOK_VARIABLES;

/** The configuration of the webhook. */
export interface WebhookSettings {
  readonly url: string;
  /** Undefined only in a cluster, where a Secret holds it. */
  readonly secretFile: string | undefined;
}

const shape = z.object(WEBHOOK_VARIABLES);
type Values = Readonly<z.output<typeof shape>>;

/** The settings from the variables; undefined without an address. */
export function webhookSettings({
  GRANTRY_ALERT_WEBHOOK_URL: url,
  GRANTRY_ALERT_WEBHOOK_SECRET_FILE: secretFile,
}: Values): WebhookSettings | undefined {
  return url === undefined ? undefined : { url, secretFile };
}

/**
 * Faults in the combination of variables.
 * @param isSet whether a variable has a text
 * @param hasSecrets whether a Secret of the cluster may provide what no file provides
 */
export function webhookFaults(
  isSet: (name: Variable | 'GRANTRY_REDIS_URL') => boolean,
  hasSecrets: boolean,
): readonly string[] {
  const [url, secret] = [isSet('GRANTRY_ALERT_WEBHOOK_URL'), isSet('GRANTRY_ALERT_WEBHOOK_SECRET_FILE')];
  const faults: string[] = [];
  if (url !== secret && !(url && hasSecrets))
    faults.push('GRANTRY_ALERT_WEBHOOK_URL and GRANTRY_ALERT_WEBHOOK_SECRET_FILE need each other');
  if (url && !isSet('GRANTRY_REDIS_URL')) {
    faults.push('GRANTRY_ALERT_WEBHOOK_URL needs GRANTRY_REDIS_URL: alerts wait in Redis until they arrived');
  }
  return faults;
}

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);

/** Why alerts cannot be posted there; undefined when they can. */
function webhookFault(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null || !['https:', 'http:'].includes(url.protocol)) return 'is not an http or https address';
  if (url.protocol === 'http:' && !LOOPBACK.has(url.hostname)) return 'needs https: http is for loopback only';
  if (url.username !== '' || url.password !== '') return 'holds a user name or password: alerts are signed instead';
  if (url.hash !== '') return 'has a fragment';
  return undefined;
}
