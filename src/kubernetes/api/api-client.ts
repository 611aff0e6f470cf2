// The HTTP client of the API server: it turns the calls of kubernetes-api.ts into requests and the responses into
// objects and outcomes. All calls of a process share connections and one rate limit. calls.ts sends them; api-errors.ts
// makes the errors.

import type { IncomingMessage } from 'node:http';
import { apiVersionOf, type KubernetesObject, type Resource, resourcePath, typed } from '../objects/resources.ts';
import { connectionError, unreadable } from './api-errors.ts';
import { APPLY, type Call, Calls, type CallsOptions, MERGE_PATCH } from './calls.ts';
import type { Request } from './connection.ts';
import {
  FIELD_MANAGER,
  type KubernetesApi,
  KubernetesError,
  type ListPage,
  type NewObject,
  type ObjectPlace,
  type PinnedPatch,
  type Selection,
  type WatchFrame,
} from './kubernetes-api.ts';
import { watchFrames } from './watch-frames.ts';

/** For a page of 500 objects from an API server that has just started. */
const LIST_MILLISECONDS = 60_000;
/** Until the API server accepts the watch. */
const WATCH_MILLISECONDS = 30_000;

const DOCUMENT_BYTES_MAX = 256 * 1024;

const METADATA = ';g=meta.k8s.io;v=v1';

export class ApiClient implements KubernetesApi {
  readonly #calls: Calls;

  constructor(options: CallsOptions) {
    this.#calls = new Calls(options);
  }

  /** Aborts the calls in flight. */
  close(): void {
    this.#calls.close();
  }

  async list(
    resource: Resource,
    options: Selection & {
      limit?: number;
      maxBytes?: number | undefined;
      continue?: string | undefined;
      signal?: AbortSignal;
    } = {},
  ): Promise<ListPage> {
    const { namespace, metadataOnly, unread, maxBytes, signal } = options;
    const { answer: page, bytes } = await this.#answer<{
      readonly items?: readonly KubernetesObject[];
      readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
    }>({
      verb: 'list',
      resource,
      namespace,
      accept: metadataOnly ? `application/json;as=PartialObjectMetadataList${METADATA}` : undefined,
      unread,
      maxBytes,
      request: {
        method: 'GET',
        signal,
        limit: LIST_MILLISECONDS,
        path: collection(resource, options, { limit: options.limit, continue: options.continue }),
      },
    });
    return {
      items: (page.items ?? []).map((item) => typed(resource, item)),
      resourceVersion: page.metadata.resourceVersion,
      continue: page.metadata.continue || undefined,
      bytes,
    };
  }

  async watch(
    resource: Resource,
    options: Selection & { resourceVersion: string; timeoutSeconds: number; signal: AbortSignal },
  ): Promise<AsyncIterable<WatchFrame>> {
    const { namespace, metadataOnly, resourceVersion, timeoutSeconds, signal } = options;
    const query = { watch: '1', allowWatchBookmarks: 'true', resourceVersion, timeoutSeconds };
    const call: Call = {
      verb: 'watch',
      resource,
      namespace,
      accept: metadataOnly ? `application/json;as=PartialObjectMetadata${METADATA}` : undefined,
      request: { method: 'GET', path: collection(resource, options, query), signal, limit: WATCH_MILLISECONDS },
    };
    const response = await this.#calls.answer(call);
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

  /**
   * The JSON at a path that is no resource, such as a discovery document.
   * @throws KubernetesError that names the path in place of a resource
   */
  async document(path: string): Promise<unknown> {
    const resource = { group: '', version: '', plural: path, kind: '' };
    const { answer } = await this.#calls.json({
      verb: 'get',
      resource,
      // The key set is only of the second type: for the first alone the API server answers 406.
      accept: 'application/json, application/jwk-set+json',
      maxBytes: DOCUMENT_BYTES_MAX,
      request: { method: 'GET', path },
    });
    return answer;
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
        verb: 'patch',
        resource,
        namespace,
        body: whole(resource, object),
        contentType: APPLY,
      },
      ...(['PATCH', path] as const),
    );
  }

  merge(resource: Resource, patch: PinnedPatch): Promise<KubernetesObject> {
    const { namespace } = patch.metadata;
    const path = `${resourcePath(resource, patch.metadata)}?fieldManager=${FIELD_MANAGER}`;
    const call = { verb: 'patch', resource, namespace, body: patch, contentType: MERGE_PATCH };
    return this.#object(call, 'PATCH', path);
  }

  async delete(
    resource: Resource,
    at: ObjectPlace & { uid: string; resourceVersion?: string },
  ): Promise<'deleted' | 'gone' | 'changed'> {
    const { uid, resourceVersion } = at;
    try {
      await this.#calls.json({
        verb: 'delete',
        resource,
        ...place(at),
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
    const { answer } = await this.#answer<KubernetesObject>({ ...call, request: { method, path } });
    return typed(call.resource, answer);
  }

  /** The response, checked to be an object or a list: both have metadata. @throws KubernetesError for any other */
  async #answer<Answer extends { readonly metadata: object }>(
    call: Call,
  ): Promise<{ readonly answer: Answer; readonly bytes: number }> {
    const { answer, bytes } = await this.#calls.json(call);
    const { metadata } = (answer ?? {}) as Partial<Answer>;
    if (typeof metadata === 'object' && metadata !== null) return { answer: answer as Answer, bytes };
    throw unreadable(this.#calls.named(call), 200, 'UnreadableAnswer');
  }

  async *#frames(call: Call, response: IncomingMessage): AsyncGenerator<WatchFrame> {
    try {
      yield* watchFrames(this.#calls.named(call), response);
    } catch (error) {
      throw error instanceof KubernetesError
        ? error
        : connectionError(this.#calls.named(call), error, call.request.signal);
    }
  }
}

function place({ namespace }: ObjectPlace): { readonly namespace?: string } {
  return namespace === undefined ? {} : { namespace };
}

function collection(
  resource: Resource,
  { namespace, labelSelector, fieldSelector }: Selection,
  more: Readonly<Record<string, string | number | undefined>>,
): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries({ labelSelector, fieldSelector, ...more })) {
    if (value !== undefined) query.set(name, String(value));
  }
  return `${resourcePath(resource, { namespace })}${query.size === 0 ? '' : `?${query}`}`;
}

function whole(resource: Resource, object: NewObject): object {
  return { apiVersion: apiVersionOf(resource), kind: resource.kind, ...object };
}
