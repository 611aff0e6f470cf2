// The API of a page as a process, and what it answers.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { freePort } from '../../free-port.ts';
import { succeeds, until } from '../../until.ts';

/** The blocks of a page in a language whose first line is a comment with the name of a file, by that name. */
export function filesOf(page: string, language: string): ReadonlyMap<string, string> {
  const blocks = page.matchAll(new RegExp(`\`\`\`${language}\\n(?://|#) (\\S+)\\n(.*?)\`\`\``, 'gs'));
  return new Map([...blocks].map(([, name = '', code = '']) => [name, code]));
}

/** The first block of manifests of a page. */
export function manifestsOf(page: string): string {
  const [, manifests] = /```yaml\n(.*?)```/s.exec(page) ?? [];
  if (manifests === undefined) throw new Error('the page has no manifests');
  return manifests;
}

/** An answer of the API: its status, its challenge and its body. */
export interface Answer {
  readonly status: number;
  readonly challenge: string | null;
  readonly body: string;
}

/** How the program is started: with `ISSUER` and `PORT` in its environment. */
export interface Program {
  readonly command: string;
  readonly words: readonly string[];
  readonly cwd: string;
  /** Beside these two. */
  readonly environment?: Readonly<Record<string, string>>;
}

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGTERM');
});

export class NotesProgram {
  readonly #child: ChildProcess;
  readonly #port: number;
  #errors = '';

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.#port = port;
    running.add(child);
    child.once('exit', () => running.delete(child));
    child.stderr?.on('data', (chunk) => {
      this.#errors += chunk;
    });
  }

  /** Starts it and waits until it answers. */
  static async start(program: Program | undefined, issuer: string): Promise<NotesProgram> {
    if (program === undefined) throw new Error('no such program');
    const { command, words, cwd, environment } = program;
    const port = await freePort();
    const env = { ...process.env, ...environment, ISSUER: issuer, PORT: `${port}` };
    const child = spawn(command, words, { cwd, env, stdio: ['ignore', 'ignore', 'pipe'] });
    const started = new NotesProgram(child, port);
    const answers = () => {
      if (child.exitCode !== null) throw new Error(`the program ended:\n${started.#errors}`);
      return succeeds(started.answer(undefined));
    };
    await until('the program answers', answers, 30_000);
    return started;
  }

  /** Its origin. */
  get address(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** The answer to a request for the notes. @param authorization the header, none where undefined */
  async answer(authorization: string | undefined, { method = 'GET', query = '', more = {} } = {}): Promise<Answer> {
    const headers = authorization === undefined ? more : { authorization, ...more };
    const response = await fetch(`${this.address}/notes${query}`, { method, headers });
    const challenge = response.headers.get('www-authenticate');
    return { status: response.status, challenge, body: await response.text() };
  }

  /** The answer to a request with these header lines, names and values in turn: `fetch` sends no name twice. */
  async answerTo(headers: readonly string[]): Promise<Omit<Answer, 'body'>> {
    // A list is sent as it is, so the host is in it.
    const sent = request(`${this.address}/notes`, { headers: ['Host', `127.0.0.1:${this.#port}`, ...headers] });
    sent.end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    answer.resume();
    return { status: answer.statusCode ?? 0, challenge: answer.headers['www-authenticate'] ?? null };
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    // Not SIGKILL: the children of Apache end with it.
    this.#child.kill('SIGTERM');
    await once(this.#child, 'exit');
  }
}
