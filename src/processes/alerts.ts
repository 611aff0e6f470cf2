// The parts of the delivery of alerts, put together from what is configured.

import { readFileSync } from 'node:fs';
import type { Logger } from 'pino';
import { AlertTurns } from '../redis/alert-turns.ts';
import { Outbox } from '../redis/outbox.ts';
import { Webhook } from '../webhook/webhook.ts';
import { AlertDelivery } from './alert-delivery.ts';
import type { Settings } from './config.ts';
import { systemClock } from './machine.ts';
import type { RedisState } from './redis-state.ts';
import { StartError } from './start-error.ts';
import type { TokenServer } from './token-server.ts';

const MINIMUM_CHARACTERS = 32;

export interface AlertDeliveryParts {
  readonly redis: RedisState;
  readonly server: TokenServer;
  readonly settings: Pick<Settings, 'issuer' | 'alertWebhook'>;
  readonly log: Logger;
}

/** The delivery of a server's alerts; it rests until it is started. @throws StartError for a secret that cannot be used */
export function alertDelivery({ redis, server, settings, log }: AlertDeliveryParts): AlertDelivery {
  const { audit, metrics } = server;
  return new AlertDelivery({
    outbox: new Outbox(redis),
    turns: new AlertTurns(redis),
    webhook: settings.alertWebhook && webhookTo(settings.alertWebhook),
    onReconnect: (listener) => redis.connection.onReconnect(listener),
    issuer: settings.issuer,
    ...{ audit, metrics, log },
  });
}

function webhookTo({ url, secretFile }: NonNullable<Settings['alertWebhook']>): Webhook {
  const secrets = () => readSecrets(secretFile);
  secrets();
  return new Webhook({ url, secrets, clock: systemClock });
}

/** One secret a line; all of them sign. */
function readSecrets(file: string): readonly string[] {
  const refuse = (fault: string) => new StartError(`GRANTRY_ALERT_WEBHOOK_SECRET_FILE: ${file} ${fault}`, 2);
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw refuse(`cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
  const secrets = text.split('\n').flatMap((line) => line.trim() || []);
  if (secrets.length === 0) throw refuse('is empty');
  if (secrets.some((secret) => secret.length < MINIMUM_CHARACTERS)) {
    throw refuse(`holds a secret of less than ${MINIMUM_CHARACTERS} characters`);
  }
  return secrets;
}
