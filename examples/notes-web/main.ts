// `npm run notes-web`: the application on http://localhost:9420, beside the `grantry dev` of `npm start` and the notes API.

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import * as client from 'openid-client';
import { authJsSignIn } from './auth-js-sign-in.ts';
import { notesWeb } from './notes-web.ts';
import { openidClientSignIn } from './openid-client-sign-in.ts';
import { SignIns } from './sign-ins.ts';

const USAGE = `usage: npm run notes-web -- [options]
  --auth-js            sign people in by Auth.js instead of openid-client
  --issuer URL         where grantry is; default http://localhost:9400, or ISSUER of the environment
  --api URL            where the notes API is; default http://localhost:9410
  --port PORT          default 9420
  --secret-file FILE   the secret of the client default.notes-web`;

const OPTIONS = {
  'auth-js': { type: 'boolean', default: false },
  issuer: { type: 'string', default: process.env.ISSUER ?? 'http://localhost:9400' },
  api: { type: 'string', default: 'http://localhost:9410' },
  port: { type: 'string', default: '9420' },
  'secret-file': { type: 'string', default: 'examples/quickstart/.grantry/secrets/default.notes-web.secret' },
} as const;

type Options = ReturnType<typeof readOptions>;

function readOptions() {
  const { values } = parseArgs({ options: OPTIONS });
  if (!/^\d{1,5}$/.test(values.port) || Number(values.port) > 65_535)
    throw new TypeError('--port is a number up to 65535');
  return values;
}

/** The issuer's metadata, and this client at it. */
async function discover(issuer: URL, clientSecret: string): Promise<client.Configuration> {
  return await client.discovery(issuer, 'default.notes-web', undefined, client.ClientSecretBasic(clientSecret), {
    // On a laptop alone: openid-client takes no http otherwise.
    execute: issuer.hostname === 'localhost' ? [client.allowInsecureRequests] : [],
  });
}

async function serve(options: Options): Promise<void> {
  const clientSecret = (await readFile(options['secret-file'], 'utf8')).trim();
  const config = await discover(new URL(options.issuer), clientSecret).catch((cause: unknown) => {
    const remedy = 'start grantry first (npm start), or say by --issuer where it is';
    throw new TypeError(`no issuer answers at ${options.issuer}: ${remedy}`, { cause });
  });
  const origin = `http://localhost:${options.port}`;
  const app = notesWeb({
    config,
    clientSecret,
    origin,
    api: options.api,
    // Sign-ins end with this process, so the key of its cookies may too.
    secret: randomBytes(32).toString('base64url'),
    signIns: new SignIns(config),
    way: options['auth-js'] ? authJsSignIn : openidClientSignIn,
  });
  const server = app.listen(Number(options.port), 'localhost');
  await once(server, 'listening');
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void server.close());
  console.log(`notes web  ${origin}/  (people sign in by ${options['auth-js'] ? 'Auth.js' : 'openid-client'})`);
}

/** What a person can do about an error of the start; undefined for one that is not theirs. */
function remedyOf(error: unknown): string | undefined {
  const { code, message, port, path } = error as NodeJS.ErrnoException & { readonly port?: number };
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} is in use: end the program that has it; the client has redirect URIs at this port alone`;
    case 'ENOENT':
      return `there is no ${path}: start grantry first (npm start), it makes the secret of default.notes-web`;
    default:
      return error instanceof TypeError ? `${message}\n${USAGE}` : undefined;
  }
}

try {
  await serve(readOptions());
} catch (error) {
  const remedy = remedyOf(error);
  if (remedy === undefined) throw error;
  console.error(`notes web: ${remedy}`);
  process.exitCode = 1;
}
