// The adapter for Fastify: a plugin for all routes of a scope, and a hook for single ones.

import type { FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify';
import type { Access } from './access.ts';
import { AccessDenied } from './access-denied.ts';
import { checkedNeeds, type Needs, type Verifier } from './verifier.ts';

/** What requests need: the same for all, or by request. */
export type FastifyNeeds = Needs | ((request: FastifyRequest) => Needs);

/** The options of {@link resourceServer}. */
export interface ResourceServerOptions {
  readonly verifier: Verifier;
  readonly needs?: FastifyNeeds;
}

/** A hook for `onRequest`; with `formBody` for `preHandler`, after the body parser. */
export type ProtectHook = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;

const ACCESSES = new WeakMap<object, Access>();

/**
 * Lets requests with access through and answers all others; {@link accessOf} then has the access.
 * @param needs as for `verify`
 */
export function protect(verifier: Verifier, needs: FastifyNeeds = {}): ProtectHook {
  return async (request, reply) => {
    try {
      const { scope, form } = checkedNeeds(typeof needs === 'function' ? needs(request) : needs);
      const access = await verifier.verify(request.raw, { scope, form: form ?? request.body });
      reply.headers(access.responseHeaders);
      ACCESSES.set(request, access);
      return undefined;
    } catch (error) {
      if (!(error instanceof AccessDenied)) throw error;
      return await reply.code(error.status).headers(error.headers).send(error.body);
    }
  };
}

const plugin: FastifyPluginCallback<ResourceServerOptions> = (instance, { verifier, needs = {} }, done) => {
  instance.addHook(verifier.formBody ? 'preHandler' : 'onRequest', protect(verifier, needs));
  done();
};

/** Protects every route of the scope that it is registered in, those of child scopes too. */
export const resourceServer: FastifyPluginCallback<ResourceServerOptions> = Object.assign(plugin, {
  // Without it the hook would be of a scope of its own, with no routes.
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'grantry-resource-server',
});

/** The access of a request that was let through. @throws TypeError for another request */
export function accessOf(request: FastifyRequest): Access {
  const access = ACCESSES.get(request);
  if (access === undefined) throw new TypeError('the request did not pass the hook of grantry');
  return access;
}
