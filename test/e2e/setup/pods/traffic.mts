// Runs in a pod: asks grantry for tokens at a steady rate, however slowly it answers, with the client whose Secret is
// mounted. `GET /` answers the totals so far; `GET /stop` ends the traffic first. Its input: ../traffic.ts.

import { lookup } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { Agent, createServer, request } from 'node:http';

/** What became of the requests so far. */
export interface Totals {
  readonly seconds: number;
  readonly answered: number;
  readonly failed: number;
  /** The first failures: when, over which kind of connection, and how. */
  readonly failures: readonly string[];
  readonly slowestMilliseconds: number;
  /** The latest token by the id of the key that signed it. */
  readonly tokens: Readonly<Record<string, string>>;
}

const TICK_MILLISECONDS = 10;
const TIMEOUT_MILLISECONDS = 10_000;
const KEPT_FAILURES = 30;
/** One request in so many has a connection of its own, as from a client that just started. */
const FRESH_ONE_IN = 4;

const { TOKEN_URL = '', REQUESTS_PER_SECOND = '1', PORT = '8080' } = process.env;
const perTick = (Number(REQUESTS_PER_SECOND) * TICK_MILLISECONDS) / 1000;
/** Every connection in order: any server may close one that lies idle while no request is on it. */
const kept = new Agent({ keepAlive: true, scheduling: 'fifo' });
const fresh = new Agent({ keepAlive: false });

// Once, for a name that is slow to resolve is not grantry's.
const { host, hostname, port, pathname } = new URL(TOKEN_URL);
const { address } = await lookup(hostname);

let authorization = readCredentials();
let [sent, answered, failed, slowest] = [0, 0, 0, 0];
const failures: string[] = [];
const tokens: Record<string, string> = {};
const began = performance.now();
let ended: number | undefined;

/** As they are in the volume just now: a rotated secret arrives there while we run. */
function readCredentials(): string {
  const read = (key: string) => readFileSync(`/client/${key}`, 'utf8').trim();
  return `Basic ${Buffer.from(`${read('client-id')}:${read('client-secret')}`).toString('base64')}`;
}

function ask(connection: 'kept' | 'fresh'): void {
  const start = performance.now();
  const headers = { host, authorization, 'content-type': 'application/x-www-form-urlencoded' };
  const agent = connection === 'kept' ? kept : fresh;
  const target = { host: address, port: port || 80, path: pathname, method: 'POST', headers };
  let isOver = false;
  const asked = request({ ...target, agent, timeout: TIMEOUT_MILLISECONDS }, (response) => {
    let text = '';
    response.setEncoding('utf8').on('data', (chunk) => {
      text += chunk;
    });
    response.on('error', (error) => fail(connection, error.message));
    response.on('end', () => {
      isOver = true;
      slowest = Math.max(slowest, performance.now() - start);
      if (response.statusCode === 200) keep(text);
      else fail(connection, `${response.statusCode} ${text}`);
    });
  });
  // Where this process was held up, an answer may lie there unread.
  asked.on('timeout', () => setImmediate(() => isOver || asked.destroy(new Error('no answer in time'))));
  asked.on('error', (error) => fail(`${connection}${asked.reusedSocket ? ', used before' : ''}`, error.message));
  asked.end('grant_type=client_credentials');
}

function keep(body: string): void {
  answered += 1;
  const { access_token: token } = JSON.parse(body) as { access_token: string };
  const header = JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()) as { kid: string };
  tokens[header.kid] = token;
}

function fail(connection: string, how: string): void {
  failed += 1;
  if (failures.length < KEPT_FAILURES) failures.push(`${new Date().toISOString()} (${connection}): ${how}`);
}

function totals(): Totals {
  const seconds = ((ended ?? performance.now()) - began) / 1000;
  return { seconds, answered, failed, failures, slowestMilliseconds: slowest, tokens };
}

function askDue(): void {
  const due = ((performance.now() - began) / TICK_MILLISECONDS) * perTick;
  for (; sent < due; sent += 1) ask(sent % FRESH_ONE_IN === 0 ? 'fresh' : 'kept');
}

// Once what has arrived is read: where a busy machine held this process up, a server that has drained meanwhile has closed
// connections, and no program sends a request on one that it knows to be closed.
const ticking = setInterval(() => setImmediate(askDue), TICK_MILLISECONDS);
setInterval(() => {
  authorization = readCredentials();
}, 1000);

async function stop(): Promise<void> {
  clearInterval(ticking);
  ended ??= performance.now();
  while (answered + failed < sent) await new Promise((resolve) => setTimeout(resolve, TICK_MILLISECONDS));
}

createServer(async ({ url }, response) => {
  if (url === '/stop') await stop();
  response.end(JSON.stringify(totals()));
}).listen(Number(PORT));
process.on('SIGTERM', () => process.exit(0));
