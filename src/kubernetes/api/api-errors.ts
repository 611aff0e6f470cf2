// What is said of a call that the API server refused or did not answer: the error that kubernetes-api.ts promises, made of its
// Status, of an answer that is none, or of what became of the connection. Nothing secret gets into it.

import type { Resource } from '../objects/resources.ts';
import { NoAnswerError, noAnswer } from './connection.ts';
import { KubernetesError } from './kubernetes-api.ts';

/** Which call it was, and who asked. */
export interface FailedCall {
  readonly verb: string;
  readonly resource: Resource;
  readonly namespace?: string | undefined;
  readonly user: string;
}

/** What the API server says of a refusal. */
interface Status {
  readonly kind?: string;
  readonly code?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly details?: { readonly causes?: readonly { readonly reason?: string; readonly field?: string }[] };
}

/** For answers that are no Status, as those of a proxy in between. */
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

/** The answer has another status than 2xx. @param answer its body, parsed if it could be */
export function refusal(call: FailedCall, status: number, answer: unknown): KubernetesError {
  const isStatus = (answer as Status | undefined)?.kind === 'Status';
  const isUnknownKind = status === 404 && (call.verb === 'list' || call.verb === 'watch');
  return new KubernetesError({
    ...call,
    status,
    ...(isStatus ? told(call.resource, answer as Status) : { reason: REASONS[status] ?? 'Refused' }),
    ...(isUnknownKind ? { detail: 'the API server does not know this kind: are its CRDs installed?' } : {}),
  });
}

/** A watch ended with a frame that says why. @param object that of the frame: a Status */
export function watchEnd(call: FailedCall, object: unknown): KubernetesError {
  const status = object as Status | undefined;
  return new KubernetesError({ ...call, status: status?.code ?? 500, ...told(call.resource, status) });
}

/** An answer came that cannot be read. */
export function unreadable(
  call: FailedCall,
  status: number,
  reason: 'UnreadableAnswer' | 'UndecodableFrame',
): KubernetesError {
  return new KubernetesError({ ...call, status, reason });
}

/** No answer came, or only half of one. @param signal what the call could be ended by */
export function silence(call: FailedCall, error: unknown, signal: AbortSignal | undefined): KubernetesError {
  const isLate = (signal?.reason as Error | undefined)?.name === 'TimeoutError';
  const { reason, message } =
    isLate && !(error instanceof NoAnswerError && error.reason === 'Timeout')
      ? { reason: 'Timeout', message: 'no answer in time' }
      : noAnswer(error as NodeJS.ErrnoException, signal);
  return new KubernetesError({ ...call, status: 0, reason, detail: message });
}

function told(resource: Resource, status: Status | undefined) {
  // What is wrong with a Secret may be told by its contents.
  const isTelling = resource.plural === 'secrets' && (status?.code === 400 || status?.code === 422);
  const causes = status?.details?.causes ?? [];
  // Server-side apply calls another object under the same name an invalid change of its uid.
  const isAnother = causes.some(({ field }) => field === 'metadata.uid');
  return {
    reason: isAnother ? 'Conflict' : status?.reason || (REASONS[status?.code ?? 0] ?? 'Refused'),
    detail: isTelling ? undefined : status?.message?.slice(0, LONGEST_DETAIL),
    causes: causes.flatMap(({ reason }) => reason ?? []),
  };
}
