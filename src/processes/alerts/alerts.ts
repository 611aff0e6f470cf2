// Assembles the delivery of alerts from the configuration.

import { readFileSync } from 'node:fs';
import type { Logger } from 'pino';
import { AlertDelivery, type AlertDeliveryOptions } from '../../delivery/alert-delivery.ts';
import { AlertOutbox } from '../../redis/grants/alert-outbox.ts';
import { Webhook } from '../../webhook/webhook.ts';
import type { Settings } from '../config/config.ts';
import { StartError } from '../config/start-error.ts';
import type { WebhookSettings } from '../config/webhook-config.ts';
import { systemClock } from '../lifecycle/machine.ts';
import type { RedisState } from '../redis/redis-state.ts';
import type { TokenServer } from '../token-server/token-server.ts';

const MINIMUM_CHARACTERS = 32;

export interface AlertDeliveryParts {
  readonly redis: RedisState;
  readonly server: TokenServer;
  readonly settings: Pick<Settings, 'issuer' | 'alertWebhook'>;
  readonly log: Logger;
  /** The text of the secret where no file is configured; undefined while there is none. */
  readonly webhookSecret?: () => string | undefined;
  /** As of {@link AlertDelivery}. */
  readonly alerted?: AlertDeliveryOptions['alerted'];
}

/** The delivery of a server's alerts, not started yet. @throws StartError for a secret that cannot be used */
export function alertDelivery(parts: AlertDeliveryParts): AlertDelivery {
  const { redis, server, settings, log, webhookSecret, alerted } = parts;
  const { audit, metrics } = server;
  return new AlertDelivery({
    outbox: new AlertOutbox(redis),
    webhook: settings.alertWebhook && webhookTo(settings.alertWebhook, webhookSecret),
    onReconnect: (listener) => redis.connection.onReconnect(listener),
    issuer: settings.issuer,
    audit,
    metrics,
    log,
    alerted,
  });
}

function webhookTo({ url, secretFile }: WebhookSettings, textElsewhere?: () => string | undefined): Webhook {
  const inFile = () =>
    parseSecrets(readSecretFile(secretFile ?? ''), `GRANTRY_ALERT_WEBHOOK_SECRET_FILE: ${secretFile}`);
  // While there is no Secret a try fails; a later try may find the Secret.
  const inCluster = () => parseSecrets(textElsewhere?.() ?? '', 'the Secret grantry-webhook');
  if (secretFile !== undefined) inFile();
  return new Webhook({ url, secrets: secretFile === undefined ? inCluster : inFile, clock: systemClock });
}

function readSecretFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new StartError(`GRANTRY_ALERT_WEBHOOK_SECRET_FILE: ${file} cannot be read (${code})`, 2);
  }
}

/** One secret a line; all of them sign. @param place the source of the text, for the error */
function parseSecrets(text: string, place: string): readonly string[] {
  const secrets = text.split('\n').flatMap((line) => line.trim() || []);
  if (secrets.length === 0) throw new StartError(`${place} is empty`, 2);
  if (secrets.some((secret) => secret.length < MINIMUM_CHARACTERS)) {
    throw new StartError(`${place} holds a secret of less than ${MINIMUM_CHARACTERS} characters`, 2);
  }
  return secrets;
}
