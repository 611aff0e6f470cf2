// The notes example as `npm start`, `npm run notes-api` and `npm run notes-web` run it: a copy of the quickstart, served by
// `grantry dev`, and API and web application beside it, each a process of its own.

import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { vi } from 'vitest';
import { answerIn } from '../clients/person.ts';
import { freePort } from '../free-port.ts';
import { TestBrowser } from '../http/sign-in/sign-in-browser.ts';
import { folderOf, removeFolder } from '../manifests/a-folder.ts';
import { endProcesses, GrantryProcess, startDev } from '../processes/grantry-process.ts';

// A sign-in takes half a dozen starts of Node.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const ROOT = join(import.meta.dirname, '../..');
export const AUDIENCE = 'urn:grantry:ns:default:notes';

/** Clients without a person, whose tokens are bearer tokens, and one of another API. */
const MACHINES = ['reader default/notes.read', 'writer default/notes.read,default/notes.write'].map((line) => {
  const [name = '', scopes = ''] = line.split(' ');
  return machine(name, scopes, AUDIENCE);
});
MACHINES.push(machine('stranger', 'default/notes.read', 'urn:grantry:ns:default:other'));

function machine(name: string, scopes: string, audience: string): string {
  return `apiVersion: grantry.dev/v1alpha1
kind: OAuthClient
metadata: {name: ${name}}
spec:
  grantTypes: [client_credentials]
  scopes: [${scopes}]
  defaultScopes: [${scopes}]
  audiences: ['${audience}']
`;
}

/** The command of a script of package.json, as words after `node`. */
async function scriptOf(name: string): Promise<readonly string[]> {
  const { scripts } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
    readonly scripts: Readonly<Record<string, string>>;
  };
  return scripts[name]?.split(' ').slice(1) ?? [];
}

const folders: string[] = [];

/** Ends every process of a test file, and removes what they kept. */
export async function endAll(): Promise<void> {
  await endProcesses();
  await Promise.all(folders.splice(0).map(removeFolder));
}

/** A served quickstart. */
export class Issuer {
  readonly issuer: string;
  readonly folder: string;
  readonly process: GrantryProcess;
  readonly #webPort: number;

  private constructor(parts: { issuer: string; folder: string; grantry: GrantryProcess; webPort: number }) {
    this.issuer = parts.issuer;
    this.folder = parts.folder;
    this.process = parts.grantry;
    this.#webPort = parts.webPort;
  }

  /** @param environment of `grantry dev` */
  static async start(environment: Readonly<Record<string, string>> = {}): Promise<Issuer> {
    const folder = await folderOf({});
    folders.push(folder);
    await cp(join(ROOT, 'examples/quickstart'), folder, {
      recursive: true,
      filter: (path) => !path.includes('.grantry'),
    });
    await writeFile(join(folder, 'machines.yaml'), MACHINES.join('---\n'));
    // The addresses of the web application are in its manifest.
    const webPort = await freePort();
    const notes = await readFile(join(folder, 'notes.yaml'), 'utf8');
    await writeFile(join(folder, 'notes.yaml'), notes.replaceAll('localhost:9420', `localhost:${webPort}`));
    const { grantry, issuer } = await startDev(folder, [], { environment });
    return new Issuer({ issuer, folder, grantry, webPort });
  }

  secretFileOf(client: string): string {
    return join(this.folder, `.grantry/secrets/default.${client}.secret`);
  }

  /** A form to an endpoint, from a client with a secret. */
  async post(path: string, client: string, form: Readonly<Record<string, string>>): Promise<Response> {
    const secret = (await readFile(this.secretFileOf(client), 'utf8')).trim();
    const authorization = `Basic ${Buffer.from(`default.${client}:${secret}`).toString('base64')}`;
    const body = new URLSearchParams(form);
    return await fetch(`${this.issuer}${path}`, { method: 'POST', headers: { authorization }, body });
  }

  /** A bearer token of a machine. */
  async token(client: string): Promise<string> {
    const answer = await this.post('/token', client, { grant_type: 'client_credentials' });
    return ((await answer.json()) as { readonly access_token: string }).access_token;
  }

  /** The API for tokens of this issuer. @param args of `npm run notes-api` */
  async startApi(...args: readonly string[]): Promise<string> {
    const port = await freePort();
    const secret = ['--secret-file', this.secretFileOf('notes-api')];
    const api = new GrantryProcess(['--port', `${port}`, '--issuer', this.issuer, ...secret, ...args], {
      program: await scriptOf('notes-api'),
    });
    const [, address = ''] = await api.printed(/^notes API +(\S+)\/notes/);
    return address;
  }

  /** The web application at this issuer, one at a time. @param args of `npm run notes-web` */
  async startWeb(...args: readonly string[]): Promise<{ readonly web: string; readonly process: GrantryProcess }> {
    const secret = ['--secret-file', this.secretFileOf('notes-web')];
    const process = new GrantryProcess(['--port', `${this.#webPort}`, '--issuer', this.issuer, ...secret, ...args], {
      program: await scriptOf('notes-web'),
    });
    const [, web = ''] = await process.printed(/^notes web +(\S+)\/ /);
    return { web, process };
  }
}

/** `npm run notes-api` with these arguments. */
export async function notesApi(...args: readonly string[]): Promise<GrantryProcess> {
  return new GrantryProcess(args, { program: await scriptOf('notes-api') });
}

/** `npm run notes` with these arguments. */
export async function notes(...args: readonly string[]): Promise<GrantryProcess> {
  return new GrantryProcess(args, { program: await scriptOf('notes') });
}

/** The address that `npm run notes` asks its person to open. */
export async function signInAddress(command: GrantryProcess): Promise<URL> {
  const [address = ''] = await command.printedError(/http:\S+\/authorize\?\S+/);
  return new URL(address);
}

/** What `demo` does with an address: the page of the program that the browser ends at. */
export async function demoDecides(address: URL, decision: 'allow' | 'deny'): Promise<Response> {
  const browser = new TestBrowser(address.origin, address.origin);
  return await fetch(await answerIn(browser, address, { username: 'demo', password: 'demo', decision }));
}
