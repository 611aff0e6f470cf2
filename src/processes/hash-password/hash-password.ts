// `grantry hash-password`: hashes a password for `users.yaml`, read from the terminal without echo or from standard
// input.

import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { hashPassword } from '../../login/local/local-users.ts';

export interface HashPasswordOptions {
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
}

/** Prints the argon2id hash in PHC form. @returns 0; 1 when there is no password or the two typed ones differ */
export async function printPasswordHash({ stdin, stdout, stderr }: HashPasswordOptions): Promise<number> {
  const password = stdin.isTTY ? await typedTwice(stdin, stderr) : firstLine(await text(stdin));
  if (password === undefined) {
    stderr.write('grantry hash-password: the two passwords differ\n');
    return 1;
  }
  if (password === '') {
    stderr.write('grantry hash-password: the password is empty\n');
    return 1;
  }
  stdout.write(`${await hashPassword(password)}\n`);
  if (stdin.isTTY) stderr.write('It goes into a users.yaml, as the passwordHash of its user.\n');
  return 0;
}

// `echo password | grantry hash-password` ends with a line break that belongs to echo.
function firstLine(input: string): string {
  return input.replace(/\r?\n$/, '');
}

async function typedTwice(stdin: NodeJS.ReadStream, stderr: NodeJS.WritableStream): Promise<string | undefined> {
  // A terminal interface echoes to its output; this one discards everything, and the prompts are written to stderr
  // directly.
  const silence = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = createInterface({ input: stdin, output: silence, terminal: true });
  const interrupted = new Promise<string>((resolve) => terminal.once('close', () => resolve('')));
  const ask = async (prompt: string) => {
    stderr.write(prompt);
    const answer = await Promise.race([terminal.question(''), interrupted]);
    stderr.write('\n');
    return answer;
  };
  try {
    const first = await ask('Password: ');
    if (first === '') return '';
    return (await ask('Once more: ')) === first ? first : undefined;
  } finally {
    terminal.close();
  }
}
