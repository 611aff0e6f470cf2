// The routes of the API. Access tokens decide: reading and writing need a scope each, and a person has their own notes only.

import fastify, { type FastifyInstance } from 'fastify';
import type { Verifier } from 'grantry/resource-server';
import { accessOf, protect } from 'grantry/resource-server/fastify';
import type { Notes } from './notes.ts';

const BODY_BYTES_MOST = 16_384;

const NEW_NOTE = {
  type: 'object',
  required: ['text'],
  additionalProperties: false,
  properties: { text: { type: 'string', minLength: 1, maxLength: 2000 } },
} as const;

/** The API, which listens nowhere yet. */
export function notesApi({ verifier, notes }: { verifier: Verifier; notes: Notes }): FastifyInstance {
  // Fastify would convert a number to text, and drop members that the schema does not name.
  const app = fastify({
    bodyLimit: BODY_BYTES_MOST,
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false } },
  });

  app.get('/notes', { onRequest: protect(verifier, { scope: 'default/notes.read' }) }, (request) => ({
    notes: notes.of(accessOf(request).subject),
  }));

  app.post<{ Body: { readonly text: string } }>(
    '/notes',
    { onRequest: protect(verifier, { scope: 'default/notes.write' }), schema: { body: NEW_NOTE } },
    (request, reply) => {
      const note = notes.add(accessOf(request).subject, request.body.text);
      if (note === undefined)
        return reply.code(409).send({ statusCode: 409, message: 'There is no room for more notes.' });
      return reply.code(201).send(note);
    },
  );

  return app;
}
