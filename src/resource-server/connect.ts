// The adapter for Connect and Express: a middleware.

import type { Access } from './access.ts';
import { AccessDenied } from './access-denied.ts';
import type { NodeRequest } from './api-request.ts';
import type { Needs, Verifier } from './verifier.ts';

/** What of a response of node:http is used. */
export interface NodeResponse {
  statusCode: number;
  setHeader(name: string, value: string): unknown;
  end(body?: string): unknown;
}

export type Middleware<Incoming extends NodeRequest> = (
  request: Incoming,
  response: NodeResponse,
  next: (error?: unknown) => void,
) => void;

const ACCESSES = new WeakMap<object, Access>();

/**
 * Lets requests with access through and answers all others; {@link accessOf} then has the access. With `formBody`, a body
 * parser comes before it.
 * @param needs as for `verify`; a function where they depend on the request
 */
export function protect<Incoming extends NodeRequest>(
  verifier: Verifier,
  needs: Needs | ((request: Incoming) => Needs) = {},
): Middleware<Incoming> {
  const admit = async (request: Incoming, response: NodeResponse): Promise<boolean> => {
    try {
      const access = await verifier.verify(request, typeof needs === 'function' ? needs(request) : needs);
      for (const [name, value] of Object.entries(access.responseHeaders)) response.setHeader(name, value);
      ACCESSES.set(request, access);
      return true;
    } catch (error) {
      if (!(error instanceof AccessDenied)) throw error;
      response.statusCode = error.status;
      for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value);
      response.end(error.body);
      return false;
    }
  };
  return (request, response, next) => {
    admit(request, response).then((isAdmitted) => {
      if (isAdmitted) next();
    }, next);
  };
}

/** The access of a request that the middleware let through. @throws TypeError for another request */
export function accessOf(request: object): Access {
  const access = ACCESSES.get(request);
  if (access === undefined) throw new TypeError('the request did not pass the middleware of grantry');
  return access;
}
