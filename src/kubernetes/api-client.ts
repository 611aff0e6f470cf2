// The API server over HTTP: the calls of client.ts as requests, its answers as objects, words or errors. All calls of a
// process share connections and one limit on their rate.

import type { IncomingMessage } from 'node:http';
import {
  type KubernetesApi,
  KubernetesError,
  type ListPage,
  type NewObject,
  type ObjectPlace,
  type Selection,
  type WatchFrame,
} from './client.ts';
import type { ClusterAccess } from './cluster-access.ts';
import { Connection, NoAnswerError, noAnswer, type Request } from './connection.ts';
import { pause } from './pause.ts';
import { apiVersionOf, type KubernetesObject, type Resource, resourcePath } from './resources.ts';
import { TokenBucket } from './token-bucket.ts';
import { watchLines } from './watch-lines.ts';

const FIELD_MANAGER = 'grantry-controller';
const CALL_MILLISECONDS = 10_000;
/** A page of 500 objects, from an API server that has just started. */
const LIST_MILLISECONDS = 60_000;
/** Until the API server says that it watches. */
const WATCH_MILLISECONDS = 30_000;
const PER_SECOND = 200;
const BURST = 400;
/** How often a call that was refused as one too many is tried again. */
const REPEATS = 3;
const LONGEST_REPEAT_MILLISECONDS = 10_000;

const METADATA = ';g=meta.k8s.io;v=v1';

export interface ApiClientOptions {
  readonly access: ClusterAccess;
  /** `grantry/<version>`. */
  readonly userAgent: string;
  /** Milliseconds for one call without a list; default 10 000. */
  readonly callLimit?: number;
}

interface Call {
  readonly verb: string;
  readonly resource: Resource;
  readonly namespace?: string | undefined;
  readonly request: Omit<Request, 'limit' | 'headers' | 'isWatch' | 'body'> & { readonly limit?: number };
  readonly accept?: string | undefined;
  readonly contentType?: string;
  readonly body?: unknown;
}

export class ApiClient implements KubernetesApi {
  readonly #access: ClusterAccess;
  readonly #connection: Connection;
  readonly #callLimit: number;
  readonly #rate = new TokenBucket({ perSecond: PER_SECOND, burst: BURST });

  constructor(options: ApiClientOptions) {
    this.#access = options.access;
    this.#connection = new Connection(options);
    this.#callLimit = options.callLimit ?? CALL_MILLISECONDS;
  }

  /** Cuts what still runs. */
  close(): void {
    this.#connection.close();
  }

  async list(
    resource: Resource,
    options: Selection & { limit?: number; continue?: string | undefined; signal?: AbortSignal } = {},
  ): Promise<ListPage> {
    const { namespace, metadataOnly, signal } = options;
    const page = (await this.#call({
      ...{ verb: 'list', resource, namespace },
      accept: metadataOnly ? `application/json;as=PartialObjectMetadataList${METADATA}` : undefined,
      request: {
        ...{ method: 'GET', signal, limit: LIST_MILLISECONDS },
        path: collection(resource, options, { limit: options.limit, continue: options.continue }),
      },
    })) as {
      readonly items?: readonly KubernetesObject[];
      readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
    };
    return {
      items: (page.items ?? []).map((item) => typed(resource, item)),
      resourceVersion: page.metadata.resourceVersion,
      continue: page.metadata.continue || undefined,
    };
  }

  async watch(
    resource: Resource,
    options: Selection & { resourceVersion: string; timeoutSeconds: number; signal: AbortSignal },
  ): Promise<AsyncIterable<WatchFrame>> {
    const { namespace, metadataOnly, resourceVersion, timeoutSeconds, signal } = options;
    const query = { watch: '1', allowWatchBookmarks: 'true', resourceVersion, timeoutSeconds };
    const call: Call = {
      ...{ verb: 'watch', resource, namespace },
      accept: metadataOnly ? `application/json;as=PartialObjectMetadata${METADATA}` : undefined,
      request: { method: 'GET', path: collection(resource, options, query), signal, limit: WATCH_MILLISECONDS },
    };
    const response = await this.#answer(call);
    return this.#frames(call, response);
  }

  async get(resource: Resource, at: ObjectPlace): Promise<KubernetesObject | undefined> {
    try {
      return await this.#object({ verb: 'get', resource, ...place(at) }, 'GET', resourcePath(resource, at));
    } catch (error) {
      if (error instanceof KubernetesError && error.status === 404) return undefined;
      throw error;
    }
  }

  create(resource: Resource, object: NewObject): Promise<KubernetesObject> {
    const { namespace } = object.metadata;
    const path = `${resourcePath(resource, { namespace })}?fieldManager=${FIELD_MANAGER}`;
    return this.#object({ verb: 'create', resource, namespace, body: whole(resource, object) }, 'POST', path);
  }

  update(resource: Resource, object: NewObject): Promise<KubernetesObject> {
    const path = `${resourcePath(resource, object.metadata)}?fieldManager=${FIELD_MANAGER}`;
    const { namespace } = object.metadata;
    return this.#object({ verb: 'update', resource, namespace, body: whole(resource, object) }, 'PUT', path);
  }

  apply(resource: Resource, object: NewObject, options: { subresource?: 'status' } = {}): Promise<KubernetesObject> {
    const { namespace } = object.metadata;
    const subresource = options.subresource === undefined ? '' : `/${options.subresource}`;
    const path = `${resourcePath(resource, object.metadata)}${subresource}?fieldManager=${FIELD_MANAGER}&force=true`;
    return this.#object(
      {
        ...{ verb: 'patch', resource, namespace, body: whole(resource, object) },
        contentType: 'application/apply-patch+yaml',
      },
      ...(['PATCH', path] as const),
    );
  }

  async delete(
    resource: Resource,
    at: ObjectPlace & { uid: string; resourceVersion?: string },
  ): Promise<'deleted' | 'gone' | 'changed'> {
    const { uid, resourceVersion } = at;
    try {
      await this.#call({
        ...{ verb: 'delete', resource, ...place(at) },
        request: { method: 'DELETE', path: resourcePath(resource, at) },
        body: { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid, resourceVersion } },
      });
      return 'deleted';
    } catch (error) {
      if (error instanceof KubernetesError && error.status === 404) return 'gone';
      if (error instanceof KubernetesError && error.status === 409) return 'changed';
      throw error;
    }
  }

  async #object(call: Omit<Call, 'request'>, method: Request['method'], path: string): Promise<KubernetesObject> {
    return typed(call.resource, (await this.#call({ ...call, request: { method, path } })) as KubernetesObject);
  }

  async #call(call: Call): Promise<unknown> {
    const limit = AbortSignal.timeout(call.request.limit ?? this.#callLimit);
    const signal = call.request.signal === undefined ? limit : AbortSignal.any([call.request.signal, limit]);
    const response = await this.#answer({ ...call, request: { ...call.request, signal } });
    const text = await this.#text(call, response, signal);
    try {
      return JSON.parse(text);
    } catch {
      throw this.#error(call, { status: response.statusCode ?? 0, reason: 'UnreadableAnswer' });
    }
  }

  /** The answer to a call that was accepted. Asks again with fresh credentials, and after a pause when it was one too many. */
  async #answer(call: Call): Promise<IncomingMessage> {
    let mayRenew = true;
    for (let repeats = 0; ; repeats++) {
      await this.#pause(call, this.#rate.take());
      const response = await this.#send(call);
      const { statusCode: status = 0 } = response;
      if (status >= 200 && status < 300) return response;
      const error = this.#refusal(call, status, await this.#text(call, response, call.request.signal));
      if (status === 401 && mayRenew) {
        mayRenew = false;
        this.#access.renew();
        continue;
      }
      if (status !== 429 || repeats >= REPEATS) throw error;
      const seconds = Number(response.headers['retry-after'] ?? 1);
      await this.#pause(call, Math.min(LONGEST_REPEAT_MILLISECONDS, Math.max(1, seconds || 1) * 1000));
    }
  }

  async #send(call: Call): Promise<IncomingMessage> {
    const { request, accept = 'application/json', contentType = 'application/json', body } = call;
    const headers = body === undefined ? { accept } : { accept, 'content-type': contentType };
    const isWatch = call.verb === 'watch';
    const text = body === undefined ? undefined : JSON.stringify(body);
    try {
      return await this.#connection.send({ limit: this.#callLimit, ...request, headers, isWatch, body: text });
    } catch (error) {
      throw this.#silence(call, error, call.request.signal);
    }
  }

  async #text(call: Call, response: IncomingMessage, signal: AbortSignal | undefined): Promise<string> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of response) chunks.push(chunk as Buffer);
    } catch (error) {
      throw this.#silence(call, error, signal);
    }
    return Buffer.concat(chunks).toString('utf8');
  }

  async *#frames(call: Call, response: IncomingMessage): AsyncGenerator<WatchFrame> {
    try {
      for await (const line of watchLines(response)) yield this.#frame(call, line);
    } catch (error) {
      throw error instanceof KubernetesError ? error : this.#silence(call, error, call.request.signal);
    }
  }

  #frame(call: Call, line: string): WatchFrame {
    const { type, object } = parsedFrame(line) ?? {};
    if (type === 'ERROR') {
      const status = object as Status | undefined;
      return { type, error: this.#error(call, { status: status?.code ?? 500, ...told(call, status) }) };
    }
    const { metadata } = (object ?? {}) as Partial<KubernetesObject>;
    if (typeof metadata?.resourceVersion === 'string') {
      if (type === 'BOOKMARK') return { type, resourceVersion: metadata.resourceVersion };
      const isObject = typeof metadata.name === 'string' && typeof metadata.uid === 'string';
      if (isObject && (type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED')) {
        return { type, object: typed(call.resource, object as KubernetesObject) };
      }
    }
    throw this.#error(call, { status: 0, reason: 'UndecodableFrame' });
  }

  async #pause(call: Call, milliseconds: number): Promise<void> {
    if (milliseconds <= 0) return;
    const { signal } = call.request;
    await pause(milliseconds, signal);
    if (signal?.aborted) throw this.#silence(call, signal.reason, signal);
  }

  #refusal(call: Call, status: number, body: string): KubernetesError {
    const answer = parsed(body) as Status | undefined;
    const isStatus = answer?.kind === 'Status';
    const isUnknownKind = status === 404 && (call.verb === 'list' || call.verb === 'watch');
    return this.#error(call, {
      status,
      ...(isStatus ? told(call, answer) : { reason: REASONS[status] ?? 'Refused' }),
      ...(isUnknownKind ? { detail: 'the API server does not know this kind: are its CRDs installed?' } : {}),
    });
  }

  #silence(call: Call, error: unknown, signal: AbortSignal | undefined): KubernetesError {
    const isLate = (signal?.reason as Error | undefined)?.name === 'TimeoutError';
    const { reason, message } =
      isLate && !(error instanceof NoAnswerError && error.reason === 'Timeout')
        ? { reason: 'Timeout', message: 'no answer in time' }
        : noAnswer(error as NodeJS.ErrnoException, signal);
    return this.#error(call, { status: 0, reason, detail: message });
  }

  #error(
    call: Call,
    answer: { status: number; reason: string; detail?: string | undefined; causes?: readonly string[] },
  ): KubernetesError {
    const { verb, resource, namespace } = call;
    return new KubernetesError({ verb, resource, namespace, user: this.#connection.user, ...answer });
  }
}

/** What the API server says of a refusal. */
interface Status {
  readonly kind?: string;
  readonly code?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly details?: { readonly causes?: readonly { readonly reason?: string; readonly field?: string }[] };
}

/** For answers that are no Status, as those of a proxy in between. */
const REASONS: Readonly<Record<number, string>> = {
  ...{ 401: 'Unauthorized', 403: 'Forbidden', 404: 'NotFound', 409: 'Conflict', 410: 'Gone' },
  ...{ 429: 'TooManyRequests', 500: 'InternalError', 503: 'ServiceUnavailable', 504: 'Timeout' },
};

const LONGEST_DETAIL = 500;

function told({ resource }: Call, status: Status | undefined) {
  // What is wrong with a Secret may be told by its contents.
  const isTelling = resource.plural === 'secrets' && (status?.code === 400 || status?.code === 422);
  const causes = status?.details?.causes ?? [];
  // Server-side apply calls another object under the same name an invalid change of its uid.
  const isAnother = causes.some(({ field }) => field === 'metadata.uid');
  return {
    reason: isAnother ? 'Conflict' : status?.reason || (REASONS[status?.code ?? 0] ?? 'Refused'),
    detail: isTelling ? undefined : status?.message?.slice(0, LONGEST_DETAIL),
    causes: causes.flatMap(({ reason }) => reason ?? []),
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function parsedFrame(line: string): { readonly type?: unknown; readonly object?: unknown } | undefined {
  const frame = parsed(line);
  return typeof frame === 'object' && frame !== null ? frame : undefined;
}

function place({ namespace }: ObjectPlace): { readonly namespace?: string } {
  return namespace === undefined ? {} : { namespace };
}

function collection(
  resource: Resource,
  { namespace, labelSelector }: Selection,
  more: Readonly<Record<string, string | number | undefined>>,
): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries({ labelSelector, ...more })) {
    if (value !== undefined) query.set(name, String(value));
  }
  return `${resourcePath(resource, { namespace })}${query.size === 0 ? '' : `?${query}`}`;
}

/** Items of most lists name no kind, and metadata-only objects one that is not theirs. */
function typed(resource: Resource, object: KubernetesObject): KubernetesObject {
  const apiVersion = apiVersionOf(resource);
  if (object.kind === resource.kind && object.apiVersion === apiVersion) return object;
  return { ...object, apiVersion, kind: resource.kind };
}

function whole(resource: Resource, object: NewObject): object {
  return { apiVersion: apiVersionOf(resource), kind: resource.kind, ...object };
}
