// The KubernetesError of a call that the API server refused or did not answer: made from its Status, from a response
// that is no Status, or from the error of the connection. No error contains a secret value.

import { printed } from '../../admission/kinds/quoted.ts';
import type { Resource } from '../objects/resources.ts';
import { NoAnswerError, noAnswer } from './connection.ts';
import { KubernetesError } from './kubernetes-api.ts';

/** The call that failed, and the user that made it. */
export interface FailedCall {
  readonly verb: string;
  readonly resource: Resource;
  readonly namespace?: string | undefined;
  readonly user: string;
}

/** The Status with which the API server refuses a call. */
interface Status {
  readonly kind?: string;
  readonly code?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly details?: { readonly causes?: readonly { readonly reason?: string; readonly field?: string }[] };
}

/** For responses that are no Status, as those of a proxy in between. */
const REASONS: Readonly<Record<number, string>> = {
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  410: 'Gone',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

const LONGEST_DETAIL = 500;

/** The error of a response whose status is not 2xx. @param answer its body as JSON; undefined when it is none */
export function refusal(call: FailedCall, status: number, answer: unknown): KubernetesError {
  const isStatus = (answer as Status | undefined)?.kind === 'Status';
  const isUnknownKind = status === 404 && (call.verb === 'list' || call.verb === 'watch');
  return new KubernetesError({
    ...call,
    status,
    ...(isStatus ? statusFields(call.resource, answer as Status) : { reason: REASONS[status] ?? 'Refused' }),
    ...(isUnknownKind ? { detail: 'the API server does not know this kind: are its CRDs installed?' } : {}),
  });
}

/** The error of a watch that ended with an ERROR frame. @param object that of the frame: a Status */
export function watchEnd(call: FailedCall, object: unknown): KubernetesError {
  const status = object as Status | undefined;
  return new KubernetesError({ ...call, status: status?.code ?? 500, ...statusFields(call.resource, status) });
}

/** The error of a response or a frame that cannot be decoded, or that is not read. */
export function unreadable(
  call: FailedCall,
  status: number,
  reason: 'UnreadableAnswer' | 'OversizedAnswer' | 'UndecodableFrame',
): KubernetesError {
  return new KubernetesError({ ...call, status, reason });
}

/** The error of a call without a complete response. @param signal the one that could abort the call */
export function connectionError(call: FailedCall, error: unknown, signal: AbortSignal | undefined): KubernetesError {
  const isLate = (signal?.reason as Error | undefined)?.name === 'TimeoutError';
  const { reason, message } =
    isLate && !(error instanceof NoAnswerError && error.reason === 'Timeout')
      ? { reason: 'Timeout', message: 'no answer in time' }
      : noAnswer(error as NodeJS.ErrnoException, signal);
  return new KubernetesError({ ...call, status: 0, reason, detail: message });
}

function statusFields(resource: Resource, status: Status | undefined) {
  // The message on an invalid Secret may quote its values.
  const mayHoldSecret = resource.plural === 'secrets' && (status?.code === 400 || status?.code === 422);
  const message = mayHoldSecret ? undefined : status?.message;
  const causes = status?.details?.causes ?? [];
  // Server-side apply reports another object under the same name as an invalid change of its uid.
  const isAnother = causes.some(({ field }) => field === 'metadata.uid');
  return {
    reason: isAnother ? 'Conflict' : status?.reason || (REASONS[status?.code ?? 0] ?? 'Refused'),
    detail: message === undefined ? undefined : printed(message, LONGEST_DETAIL),
    causes: causes.flatMap(({ reason }) => reason ?? []),
  };
}
