// `npm run notes-api`: the API on http://localhost:9410, for the tokens of the `grantry dev` that `npm start` runs.

import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { createVerifier, type Verifier } from 'grantry/resource-server';
import { Notes } from './notes.ts';
import { notesApi } from './notes-api.ts';

const USAGE = `usage: npm run notes-api -- [options]
  --issuer URL         whose tokens are taken; default http://localhost:9400, or ISSUER of the environment
  --port PORT          default 9410
  --introspect         ask the issuer about each token: a revoked one is refused within a second
  --secret-file FILE   the secret of the client default.notes-api, for --introspect
  --require-nonce      take DPoP proofs only with a nonce of this API`;

const OPTIONS = {
  issuer: { type: 'string', default: process.env.ISSUER ?? 'http://localhost:9400' },
  port: { type: 'string', default: '9410' },
  introspect: { type: 'boolean', default: false },
  'secret-file': { type: 'string', default: 'examples/quickstart/.grantry/secrets/default.notes-api.secret' },
  'require-nonce': { type: 'boolean', default: false },
} as const;

type Options = ReturnType<typeof readOptions>;

function readOptions() {
  const { values } = parseArgs({ options: OPTIONS });
  if (!/^\d{1,5}$/.test(values.port) || Number(values.port) > 65_535)
    throw new TypeError('--port is a number up to 65535');
  return values;
}

async function verifierOf(options: Options): Promise<Verifier> {
  const common = {
    issuer: options.issuer,
    // As the ProtectedResource `notes` of examples/quickstart/notes.yaml is named, wherever the API listens.
    audience: 'urn:grantry:ns:default:notes',
    // What the proofs of clients name.
    origins: [originOf(options)],
    dpopNonce: { rule: options['require-nonce'] ? 'required' : 'on-demand' },
  } as const;
  if (!options.introspect) return createVerifier({ ...common, mode: 'local' });
  const clientSecret = (await readFile(options['secret-file'], 'utf8')).trim();
  return createVerifier({
    ...common,
    mode: 'introspection',
    introspection: { clientId: 'default.notes-api', clientSecret },
  });
}

function originOf({ port }: Options): string {
  return new URL(`http://localhost:${port}`).origin;
}

async function serve(options: Options): Promise<void> {
  const app = notesApi({ verifier: await verifierOf(options), notes: new Notes() });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void app.close());
  await app.listen({ host: 'localhost', port: Number(options.port) });
  const check = options.introspect ? 'by introspection' : 'by its keys';
  console.log(`notes API  ${originOf(options)}/notes  (tokens of ${options.issuer}, checked ${check})`);
}

/** What a person can do about an error of the start; undefined for one that is not theirs. */
function remedyOf(error: unknown): string | undefined {
  const { code, message, port, path } = error as NodeJS.ErrnoException & { readonly port?: number };
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} is in use: take another one, npm run notes-api -- --port 9411, and give --api http://localhost:9411 to what calls it`;
    case 'ENOENT':
      return `there is no ${path}: start grantry first (npm start), it makes the secret of default.notes-api`;
    default:
      return error instanceof TypeError ? `${message}\n${USAGE}` : undefined;
  }
}

try {
  await serve(readOptions());
} catch (error) {
  const remedy = remedyOf(error);
  if (remedy === undefined) throw error;
  console.error(`notes API: ${remedy}`);
  process.exitCode = 1;
}
