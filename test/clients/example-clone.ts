// A clone with examples/credentials/ alone, for what its README says of each client: `grantry dev` serves the folder there, and the
// commands run there.

import { execFile } from 'node:child_process';
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { freePort } from '../free-port.ts';
import { startDev } from '../processes/grantry-process.ts';
import { until } from '../until.ts';

const ROOT = join(import.meta.dirname, '../..');
const FOLDER = 'examples/credentials';
const EXAMPLE = join(ROOT, FOLDER);
const SECTIONS = new Map(
  readFileSync(join(EXAMPLE, 'README.md'), 'utf8')
    .split('\n## ')
    .slice(1)
    .map((section) => [nameOf(section.slice(0, section.indexOf('\n'))), section]),
);

interface Shown {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: { readonly auth: { readonly method: string } };
}

/** The client that a heading is about. */
function nameOf(heading: string): string {
  return heading.toLowerCase().replaceAll('_', '-');
}

/** The names of the sections of the README. */
export const sections: readonly string[] = [...SECTIONS.keys()];

/** The clients of the folder, by name, with their methods. */
export const clients: ReadonlyMap<string, string> = new Map(
  globSync('*.yaml', { cwd: EXAMPLE })
    .flatMap((file) => parseAllDocuments(readFileSync(join(EXAMPLE, file), 'utf8')))
    .map((document) => document.toJS() as Shown)
    .filter(({ kind }) => kind === 'OAuthClient')
    .map(({ metadata, spec }) => [metadata.name, spec.auth.method]),
);

/** The block of the section about a client. @param language of the block; of an address none */
export function shown(client: string, language = 'sh'): string {
  const [, block] = new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 's').exec(SECTIONS.get(client) ?? '') ?? [];
  if (block === undefined) throw new Error(`no block in ${language} about ${client}`);
  return block;
}

interface Served {
  readonly folder: string;
  readonly tlsPort: number;
  readonly dev: Awaited<ReturnType<typeof startDev>>;
}

export class ExampleClone {
  readonly issuer: string;
  readonly #folder: string;
  readonly #tlsPort: number;
  readonly #dev: Served['dev'];

  private constructor({ folder, tlsPort, dev }: Served) {
    this.issuer = dev.issuer;
    this.#folder = folder;
    this.#tlsPort = tlsPort;
    this.#dev = dev;
  }

  /** Serves a copy of the example. @param args further arguments of `grantry dev` */
  static async serve(...args: readonly string[]): Promise<ExampleClone> {
    const tlsPort = await freePort();
    const folder = mkdtempSync(join(tmpdir(), 'grantry-clone-'));
    for (const entry of ['src', 'package.json', 'node_modules']) symlinkSync(join(ROOT, entry), join(folder, entry));
    const copy = join(folder, FOLDER);
    cpSync(EXAMPLE, copy, { recursive: true, filter: (path) => !/\/\.(grantry|keys)/.test(path) });
    const dev = await startDev(copy, ['--mtls-port', `${tlsPort}`, ...args]);
    return new ExampleClone({ folder, tlsPort, dev });
  }

  /** What `grantry dev` has printed. */
  get output(): string {
    return this.#dev.grantry.output;
  }

  /** Where the admin port is. */
  get admin(): string {
    return this.#dev.admin;
  }

  /** Ends the server and removes the clone. */
  async remove(): Promise<void> {
    await this.#dev.grantry.end('SIGKILL');
    rmSync(this.#folder, { recursive: true });
  }

  /** Runs commands of a document. @returns what they print */
  async printed(commands: string): Promise<string> {
    const here = commands
      .replaceAll('http://localhost:9400', this.issuer)
      .replaceAll('https://localhost:9443', `https://localhost:${this.#tlsPort}`)
      .replaceAll('dev-token', `dev-token --issuer ${this.issuer}`);
    const env = { ...process.env, ISSUER: this.issuer };
    const { stdout } = await promisify(execFile)('sh', ['-ec', here], { cwd: this.#folder, env });
    return stdout;
  }

  /** Runs commands that print an answer of the token endpoint at last. @returns its members */
  async answer(commands: string): Promise<Readonly<Record<string, unknown>>> {
    const printed = await this.printed(commands);
    return JSON.parse(printed.trim().split('\n').at(-1) ?? '') as Readonly<Record<string, unknown>>;
  }

  /** Gives a client the key of a reader, by the first line about it. @returns the lines that get a token, once they do */
  async withOwnKey(client: string): Promise<string> {
    const [ownKey = '', ...rest] = shown(client).split('\n');
    await this.printed(ownKey);
    const request = rest.join('\n');
    // The folder is followed: the key is served a moment later.
    const isServed = () =>
      this.answer(request).then(
        ({ access_token: token }) => token !== undefined,
        () => false,
      );
    await until(`the key of ${client} is served`, isServed);
    return request;
  }
}
