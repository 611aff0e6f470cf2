// `npm run notes -- list`, `npm run notes -- add TEXT`: a program on a person's own machine that calls the notes API.

import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import open from 'open';
import * as client from 'openid-client';
import type { Note } from '../notes-api/notes.ts';
import { AuthorizedCalls } from './authorized-calls.ts';
import { discoveryProblem, fetchOrSay, type Places, Problem, sentenceAbout } from './problem.ts';
import { SessionFile } from './session-file.ts';

const USAGE = `usage: npm run notes -- list | add TEXT | sign-out
  --issuer URL    where grantry is; default http://localhost:9400, or ISSUER of the environment
  --api URL       where the notes API is; default http://localhost:9410
  --session FILE  where the sign-in is kept; default examples/notes-cli/.session.json`;

const OPTIONS = {
  issuer: { type: 'string', default: process.env.ISSUER ?? 'http://localhost:9400' },
  api: { type: 'string', default: 'http://localhost:9410' },
  session: { type: 'string', default: fileURLToPath(new URL('.session.json', import.meta.url)) },
} as const;

type Name = 'list' | 'add' | 'sign-out';

interface Command extends Places {
  readonly session: string;
  readonly name: Name;
  readonly text: string;
}

/** The command that the arguments make; a sentence about them where they make none. */
function readCommand(args: readonly string[]): Command | string {
  try {
    const { values, positionals } = parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
    const [name, ...words] = positionals;
    const text = words.join(' ');
    for (const url of [values.issuer, values.api]) if (!URL.canParse(url)) return `${url} is no address`;
    if (name === undefined || !isName(name)) return 'say what to do';
    if ((text !== '') !== (name === 'add')) return name === 'add' ? 'add needs a text' : `${name} takes no text`;
    return { ...values, name, text };
  } catch (error) {
    return (error as Error).message;
  }
}

function isName(word: string): word is Name {
  return ['list', 'add', 'sign-out'].includes(word);
}

async function run(command: Command): Promise<void> {
  const config = await discover(command.issuer);
  const file = new SessionFile({ path: command.session, issuer: command.issuer });
  const calls = new AuthorizedCalls({ config, file, announce });
  if (command.name === 'sign-out') console.log((await calls.signOut()) ? 'Signed out.' : 'Not signed in.');
  else if (command.name === 'list') await list(calls, command);
  else await add(calls, command);
}

async function list(calls: AuthorizedCalls, { api }: Command): Promise<void> {
  const { notes } = (await answerOf(calls, api)) as { readonly notes: readonly Note[] };
  for (const note of notes) console.log(lineOf(note));
  if (notes.length === 0) console.log('There are no notes yet.');
}

async function add(calls: AuthorizedCalls, { api, text }: Command): Promise<void> {
  console.log(lineOf((await answerOf(calls, api, { text })) as Note));
}

/** A note in one line. */
function lineOf({ id, created, text }: Note): string {
  return `${String(id).padStart(4)}  ${created.slice(0, 10)}  ${printable(text)}`;
}

/** The text without what a terminal would act on. */
function printable(text: string): string {
  return text.replaceAll(/\p{Cc}+/gu, ' ');
}

/** @throws Problem for an answer without what was asked for */
async function answerOf(calls: AuthorizedCalls, api: string, json?: object): Promise<unknown> {
  const response = await calls.call(new URL('/notes', api), json);
  if (response.status === 503) throw new Problem(`${api} cannot check tokens just now: its issuer gives it no answer`);
  const body = (await response.json().catch(() => undefined)) as { readonly message?: unknown } | undefined;
  if (response.ok && body !== undefined) return body;
  if (response.status === 404 || body === undefined) {
    throw new Problem(`${api} is not the notes API: it answers ${response.status}; say by --api where that is`);
  }
  throw new Problem(`the notes API answers ${response.status}: ${printable(String(body.message))}`);
}

async function discover(issuer: string): Promise<client.Configuration> {
  const { hostname, protocol } = new URL(issuer);
  const isOnThisMachine = protocol === 'http:' && ['localhost', '127.0.0.1', '[::1]'].includes(hostname);
  try {
    return await client.discovery(new URL(issuer), 'default.notes-cli', undefined, client.None(), {
      algorithm: 'oauth2',
      execute: isOnThisMachine ? [client.allowInsecureRequests] : [],
      [client.customFetch]: fetchOrSay,
    });
  } catch (error) {
    throw discoveryProblem(error, issuer);
  }
}

/** Shows the address, and opens it where a person watches. */
function announce(address: string): void {
  console.error(`Sign in and allow the access, in the browser:\n\n  ${address}\n`);
  // Where there is no browser the address is all there is.
  if (process.stderr.isTTY) open(address).catch(() => {});
}

async function main(args: readonly string[]): Promise<number> {
  const command = readCommand(args);
  if (typeof command === 'string') {
    console.error(`notes: ${command}\n${USAGE}`);
    return 2;
  }
  try {
    await run(command);
    return 0;
  } catch (error) {
    const sentence = sentenceAbout(error, command);
    if (sentence === undefined) throw error;
    console.error(`notes: ${sentence}`);
    return 1;
  }
}

process.exitCode = await main(process.argv.slice(2));
