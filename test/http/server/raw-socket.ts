// Sends bytes that no HTTP client would send, and reads what comes back.

import { connect } from 'node:net';

/** One answer of a server, cut from the bytes of a connection. */
export interface RawAnswer {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Everything the server sent until it closed the connection, or until nothing had come for a while. */
export function exchangeBytes(
  port: number,
  bytes: string | Buffer | readonly (string | Buffer)[],
  { quietMilliseconds = 2000 } = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    const received: Buffer[] = [];
    const socket = connect({ host: '127.0.0.1', port });
    const done = () => {
      socket.destroy();
      resolve(Buffer.concat(received).toString('latin1'));
    };
    socket.setTimeout(quietMilliseconds, done);
    socket.on('data', (chunk) => received.push(chunk));
    socket.on('close', done);
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNRESET' || error.code === 'EPIPE') done();
      else reject(error);
    });
    for (const part of Array.isArray(bytes) ? bytes : [bytes]) {
      socket.write(typeof part === 'string' ? Buffer.from(part, 'latin1') : (part as Buffer));
    }
  });
}

/** All answers in a stream of bytes; of each the body by its Content-Length. */
export function answersIn(stream: string): readonly RawAnswer[] {
  const answers: RawAnswer[] = [];
  let rest = stream;
  while (rest.startsWith('HTTP/1.1 ')) {
    const end = rest.indexOf('\r\n\r\n');
    const [statusLine = '', ...lines] = rest.slice(0, end).split('\r\n');
    const headers = Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
    );
    const length = Number(headers['content-length'] ?? 0);
    const status = Number(statusLine.split(' ')[1]);
    const body = rest.slice(end + 4, end + 4 + length);
    if (status !== 100) answers.push({ status, headers, body });
    rest = rest.slice(end + 4 + (status === 100 ? 0 : length));
  }
  return answers;
}

/** The one answer to a request; fails when there is none or more than one. */
export async function rawAnswer(port: number, bytes: Parameters<typeof exchangeBytes>[1]): Promise<RawAnswer> {
  const stream = await exchangeBytes(port, bytes);
  const [answer, ...more] = answersIn(stream);
  if (answer === undefined || more.length > 0) throw new Error(`expected one answer, got ${JSON.stringify(stream)}`);
  return answer;
}

/** A request as text: request line, headers one a line, and a body whose length is announced unless a header does. */
export function requestText(requestLine: string, headers: readonly string[] = [], body = ''): string {
  const announced = headers.some((header) => /^(content-length|transfer-encoding):/i.test(header));
  const lines = [
    requestLine,
    ...(headers.some((header) => /^host:/i.test(header)) ? [] : ['Host: 127.0.0.1']),
    ...headers,
    ...(body === '' || announced ? [] : [`Content-Length: ${Buffer.byteLength(body, 'latin1')}`]),
    'Connection: close',
  ];
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}
