// An API server of one kind in one place that is as bad as a test wants it. It keeps objects with uid and version, pages
// its lists, and lets watches go on from any version it remembers. How a real one behaves is tested in test/cluster/.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface FakeObject {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    resourceVersion: string;
  };
  readonly data: Readonly<Record<string, string>>;
}

interface HistoryEntry {
  readonly version: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: FakeObject;
}

/** What happens to a request instead of its answer. */
export type Fault =
  /** This status, with a Status object. */
  | number
  /** The connection is cut before anything is answered; or after half of the answer. */
  | 'cut'
  | 'half'
  /** 200, and then something that is not JSON. */
  | 'garbage'
  /** An ERROR frame with this code. */
  | { readonly frame: number }
  /** A watch that ends as soon as it is open; a list that fares well. */
  | 'end'
  /** Called before the answer, which is as it should be. */
  | (() => void);

export interface SeenRequest {
  readonly kind: 'list' | 'watch';
  readonly query: URLSearchParams;
  readonly authorization: string | undefined;
  readonly userAgent: string | undefined;
}

const NAMESPACE = 'team-a';

export class FakeApiServer {
  readonly requests: SeenRequest[] = [];
  /** For the next lists and watches, each for one. */
  readonly listFaults: Fault[] = [];
  readonly watchFaults: Fault[] = [];
  /** Milliseconds that a list takes. */
  listDelay = 0;
  connections = 0;
  readonly #objects = new Map<string, FakeObject>();
  readonly #server = createServer((request, response) => void this.#answer(request, response));
  readonly #watches = new Set<ServerResponse>();
  /** What lists are cut from, by their version. */
  readonly #snapshots = new Map<number, readonly FakeObject[]>();
  #history: HistoryEntry[] = [];
  #version = 100;
  /** What is older than this is forgotten. */
  #oldest = 0;
  #uids = 0;

  static async start(): Promise<FakeApiServer> {
    const fake = new FakeApiServer();
    fake.#server.on('connection', () => {
      fake.connections++;
    });
    fake.#server.listen(0, '127.0.0.1');
    await once(fake.#server, 'listening');
    return fake;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** `name=value` of every object by its key with its uid, to be compared. */
  get state(): Readonly<Record<string, string>> {
    return Object.fromEntries(
      [...this.#objects.values()]
        .sort(byName)
        .map(({ metadata, data }) => [`${metadata.namespace}/${metadata.name}`, `${metadata.uid} ${data.value}`]),
    );
  }

  get openWatches(): number {
    return this.#watches.size;
  }

  put(name: string, value: string): void {
    const before = this.#objects.get(name);
    const uid = before?.metadata.uid ?? `uid-${++this.#uids}`;
    this.#change(before === undefined ? 'ADDED' : 'MODIFIED', name, uid, value);
  }

  delete(name: string): void {
    const before = this.#objects.get(name);
    if (before !== undefined) this.#change('DELETED', name, before.metadata.uid, before.data.value ?? '');
  }

  /** Another object under the same name, which watches see as two changes and lists as one. */
  recreate(name: string, value: string): void {
    this.delete(name);
    this.put(name, value);
  }

  /** Compacts the history: a watch from an earlier version must relist, and earlier continue tokens are expired. */
  compact(): void {
    this.#version++;
    this.#oldest = this.#version;
    this.#history = [];
    this.#snapshots.clear();
  }

  bookmark(): void {
    const object = { metadata: { resourceVersion: String(this.#version) } };
    this.write(frame({ type: 'BOOKMARK', object }));
  }

  /** Sends the latest change once more. */
  repeat(): void {
    const last = this.#history.at(-1);
    if (last !== undefined) this.write(frame(last));
  }

  /** Into every open watch. */
  write(text: string | Buffer): void {
    for (const watch of this.#watches) watch.write(text);
  }

  cutWatches(): void {
    for (const watch of this.#watches) watch.destroy();
    this.#watches.clear();
  }

  endWatches(): void {
    for (const watch of this.#watches) watch.end();
    this.#watches.clear();
  }

  #change(type: HistoryEntry['type'], name: string, uid: string, value: string): void {
    const version = ++this.#version;
    const metadata = { name, namespace: NAMESPACE, uid, resourceVersion: String(version) };
    const entry = { version, type, object: { metadata, data: { value } } };
    if (type === 'DELETED') this.#objects.delete(name);
    else this.#objects.set(name, entry.object);
    this.#history.push(entry);
    this.write(frame(entry));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { searchParams: query } = new URL(request.url ?? '', this.url);
    const kind = query.has('watch') ? 'watch' : 'list';
    const { authorization, 'user-agent': userAgent } = request.headers;
    this.requests.push({ kind, query, authorization, userAgent });
    const fault = (kind === 'list' ? this.listFaults : this.watchFaults).shift();
    if (kind === 'list' && this.listDelay > 0) await new Promise((resolve) => setTimeout(resolve, this.listDelay));
    if (typeof fault === 'function') fault();
    if (typeof fault === 'number') refuse(response, fault);
    else if (fault === 'cut') request.socket.destroy();
    else if (fault === 'garbage') response.end('{"this is": not JSON}\n');
    else if (kind === 'list') this.#list(query, response, fault === 'half');
    else this.#watch(query, response, fault);
  }

  #list(query: URLSearchParams, response: ServerResponse, isCut: boolean): void {
    const [version = 0, from = 0] = (query.get('continue') ?? `${this.#version},0`).split(',').map(Number);
    // As of the first page, whatever changed since.
    const all = this.#snapshots.get(version) ?? [...this.#objects.values()].sort(byName);
    this.#snapshots.set(version, all);
    const next = from + Number(query.get('limit') ?? Infinity);
    const metadata = {
      resourceVersion: String(version),
      continue: next < all.length ? `${version},${next}` : undefined,
    };
    const text = JSON.stringify({ metadata, items: all.slice(from, next) });
    if (version < this.#oldest) refuse(response, 410);
    else if (isCut) {
      response.writeHead(200, { 'content-length': text.length });
      response.write(text.slice(0, text.length / 2), () => response.destroy());
    } else response.end(text);
  }

  #watch(query: URLSearchParams, response: ServerResponse, fault: Fault | undefined): void {
    const from = Number(query.get('resourceVersion'));
    const missed = this.#history.filter(({ version }) => version > from).map(frame);
    if (from < this.#oldest) refuse(response, 410);
    else if (fault === 'end') response.end();
    else if (fault === 'half') response.end(missed.join('').slice(0, -10));
    else if (typeof fault === 'object') response.end(frame({ type: 'ERROR', object: { code: fault.frame } }));
    else {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.flushHeaders();
      if (missed.length > 0) response.write(missed.join(''));
      this.#watches.add(response);
      response.on('close', () => this.#watches.delete(response));
    }
  }
}

function frame({ type, object }: { readonly type: string; readonly object: unknown }): string {
  return `${JSON.stringify({ type, object })}\n`;
}

function byName(one: FakeObject, other: FakeObject): number {
  return one.metadata.name < other.metadata.name ? -1 : 1;
}

function refuse(response: ServerResponse, code: number): void {
  response.writeHead(code, { 'content-type': 'application/json' });
  response.end(
    JSON.stringify({ kind: 'Status', status: 'Failure', code, reason: code === 410 ? 'Expired' : undefined }),
  );
}
