// The definition of an HTTP endpoint: a path, its methods and the format of its answers. `server.ts` holds everything
// endpoints share: parsing, CORS, errors, security headers and the one request log line. The list of them is in
// `processes/token-server/token-server.ts`.

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ChallengeFacts } from '../../oauth/resource/bearer-error.ts';
import type { Parameters } from '../../oauth/values/parameters.ts';

/**
 * The fields that a handler may add to the one log line of its request. Never a code, token, secret, verifier, cookie
 * or state.
 */
export interface RequestFacts {
  /** Only the id of a registered or refused client, never text from the request. */
  clientId?: string;
  grantType?: string;
  scope?: string;
  /** One word for what happened, e.g. `issued`, `page`, `redirected`; `refused` is set by the error writer. */
  outcome?: string;
  /** The slug of an {@link OAuthError}, set by the error writer; of a process that is not ready, the failed checks. */
  reason?: string;
  /** See {@link OAuthErrorDetails.detail}. */
  detail?: string;
}

/** One request as a handler sees it. */
export interface Exchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  /** The query of a GET or the form body of a POST, strictly parsed; the handler rejects duplicates. */
  readonly parameters: Parameters;
  /** The IP address of the peer, or the one that the trusted proxies report. */
  readonly address: string;
  readonly log: RequestFacts;
}

/**
 * Answers through `exchange.reply`, now or before the promise resolves.
 * @throws OAuthError | StoreUnavailableError for the error writer; anything else becomes 500 `server_error`.
 */
export type Handler = (exchange: Exchange) => Promise<void>;

/** The exact `Content-Type` of a POST with {@link Endpoint.body} `json`: no parameter, no other spelling. */
export const JSON_MEDIA_TYPE = 'application/json';

export interface Endpoint {
  /** A stable label for logs and metrics, e.g. `token`. */
  readonly route: string;
  /** Below the issuer's path, e.g. `/token`, `/consent/:interaction`. Matched exactly. */
  readonly path: string;
  readonly handlers: { readonly GET?: Handler; readonly POST?: Handler };
  /**
   * In place of a POST handler: whether this form may be posted where a GET belongs. It is answered by 303 to the GET, with
   * the parameters of the form as the query: a GET from another site has the cookies of this server, a POST has not.
   * Any other POST is 405.
   */
  readonly isPostedQuery?: (form: Parameters) => boolean;
  /**
   * The format of a POST body: `json`, which the handler reads from `request.body`; `form or none`, where a POST
   * without a body needs no media type; a form when absent.
   */
  readonly body?: 'json' | 'form or none';
  /** What the challenges of its refusals say, and the scope that it needs: set where it takes access tokens (RFC 6750 §3). */
  readonly challenge?: { readonly facts: ChallengeFacts; readonly scope: readonly string[] };
  /** The format of its errors. */
  readonly answers: 'json' | 'html';
  /**
   * `registered`: the union of the clients' origins; `any`: every origin (metadata); `none`: no CORS and no preflight.
   */
  readonly cors: 'registered' | 'any' | 'none';
  /** Where a client that accepts no page gets the answer of an unknown path. */
  readonly isForBrowsers?: true;
  /** Whether HEAD is answered (with the headers of GET) instead of 405. */
  readonly head: boolean;
}
