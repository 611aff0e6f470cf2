// The error of a request that gets no access, with the whole answer to it.

import type { BearerErrorAnswer, RefusalCode } from '../oauth/resource/bearer-error.ts';

/** A request without access. The answer holds nothing secret; `reason` is for logs and is never sent. */
export class AccessDenied extends Error {
  /** 400, 401, 403 or 503. */
  readonly status: number;
  /** Names in lower case, each value one header line. */
  readonly headers: Readonly<Record<string, string>>;
  /** JSON, or empty. */
  readonly body: string;
  /** Undefined where the request has no credentials. */
  readonly code: RefusalCode | undefined;
  /** A stable snake_case slug. */
  readonly reason: string;

  constructor(
    { status, headers, body }: BearerErrorAnswer,
    { code, reason, cause }: { code: RefusalCode | undefined; reason: string; cause?: unknown },
  ) {
    super(`access denied: ${reason}`, { cause });
    this.name = 'AccessDenied';
    this.status = status;
    this.headers = headers;
    this.body = body;
    this.code = code;
    this.reason = reason;
  }
}

/** The issuer, or a store of the API, does not answer: nothing can be said of the token. */
export class UnavailableError extends Error {
  /** A stable snake_case slug. */
  readonly reason: string;

  constructor(reason: string, cause?: unknown) {
    super(`access cannot be checked: ${reason}`, { cause });
    this.name = 'UnavailableError';
    this.reason = reason;
  }
}

/** The access token is not valid. */
export class InvalidTokenError extends Error {
  /** A stable snake_case slug. */
  readonly reason: string;

  constructor(reason: string) {
    super(`the access token is not valid: ${reason}`);
    this.name = 'InvalidTokenError';
    this.reason = reason;
  }
}
