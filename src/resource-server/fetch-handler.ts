// The adapter for handlers of Fetch: `(Request) => Response`.

import type { Access } from './access.ts';
import { AccessDenied } from './access-denied.ts';
import type { Needs, Verifier } from './verifier.ts';

/** A handler that needs an access. */
export type ProtectedHandler<Rest extends readonly unknown[]> = (
  request: Request,
  access: Access,
  ...rest: Rest
) => Response | Promise<Response>;

/**
 * Lets requests with access through to the handler and answers all others. What the handler itself throws is passed on.
 * @param needs as for `verify`; a function where they depend on the request
 */
export function protect<Rest extends readonly unknown[] = []>(
  verifier: Verifier,
  handler: ProtectedHandler<Rest>,
  needs: Needs | ((request: Request) => Needs) = {},
): (request: Request, ...rest: Rest) => Promise<Response> {
  return async (request, ...rest) => {
    const access = await accessOrAnswer(verifier, request, typeof needs === 'function' ? needs(request) : needs);
    if (access instanceof Response) return access;
    const response = await handler(request, access, ...rest);
    const added = Object.entries(access.responseHeaders);
    if (added.length === 0) return response;
    // The headers of a response of `fetch` cannot be changed.
    const copy = new Response(response.body, response);
    for (const [name, value] of added) copy.headers.set(name, value);
    return copy;
  };
}

async function accessOrAnswer(verifier: Verifier, request: Request, needs: Needs): Promise<Access | Response> {
  try {
    return await verifier.verify(request, needs);
  } catch (error) {
    if (!(error instanceof AccessDenied)) throw error;
    const { status, headers, body } = error;
    return new Response(body === '' ? null : body, { status, headers });
  }
}
