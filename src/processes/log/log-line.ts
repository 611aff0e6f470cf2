// Formats a line of the log for a terminal. The callers choose the fields (http/server/request-log.ts, audit-log.ts);
// JSON lines are not formatted here.

import { printable } from './printable.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Fields that are elsewhere in the line, or of no use on a terminal. */
const LEFT_OUT = new Set(['level', 'time', 'msg', 'stream']);

/** `token 200 issued default.job client_credentials (1.5 ms)` for a request, then all other fields as `name=value`. */
export function readableLine(fields: Fields): string {
  if (fields.stream === 'audit') return printable(auditLine(fields));
  if (typeof fields.route === 'string' && typeof fields.status === 'number') return printable(requestLine(fields));
  const rest = Object.entries(fields).filter(([name]) => !LEFT_OUT.has(name));
  return printable(words([fields.msg, ...rest.map(([name, value]) => `${name}=${JSON.stringify(value)}`)]));
}

/** Whether a line is shown on a terminal: of the audit stream only alerts, as each request has its own line. */
export function isForPeople(fields: Fields): boolean {
  return fields.stream !== 'audit' || fields.alert !== undefined;
}

function requestLine({
  route,
  status,
  outcome,
  reason,
  detail,
  clientId,
  grantType,
  requestId,
  durationMs,
}: Fields): string {
  // The error page shows the request id too, so that a refusal can be found by it.
  const id = typeof status === 'number' && status >= 400 ? requestId : undefined;
  return words([
    route,
    status,
    outcome,
    reason === outcome ? undefined : reason,
    detail,
    clientId,
    grantType,
    `(${durationMs} ms)`,
    id,
  ]);
}

function auditLine({ event, clientId, keyId, reason, alert }: Fields): string {
  const { id, action } = (alert ?? {}) as Fields;
  return words(['audit', event, clientId, keyId, reason, action, id]);
}

function words(parts: readonly unknown[]): string {
  return parts.filter((part) => part !== undefined && part !== '').join(' ');
}
