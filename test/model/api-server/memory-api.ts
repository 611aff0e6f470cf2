// The calls of one process to an API server in memory, over a link that a test rules: what is on its way, and for how long.

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
} from '../../../src/kubernetes/api/kubernetes-api.ts';
import { type KubernetesObject, type Resource, typed } from '../../../src/kubernetes/objects/resources.ts';
import { ApiRefusal, type MemoryApiServer } from './memory-api-server.ts';

/** A call as a link sees it. */
export interface Call {
  readonly verb: 'list' | 'watch' | 'get' | 'create' | 'update' | 'patch' | 'delete';
  readonly resource: Resource;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
}

/** What is between a process and the API server. */
export interface Link {
  /**
   * Carries a request there, and the answer back.
   * @param perform what the API server does when the request arrives; throws ApiRefusal
   */
  carry<Answer>(call: Call, perform: () => Answer): Promise<Answer>;
  /** Carries the frames of a watch, in their order. */
  open(stream: FrameStream): void;
  deliver(stream: FrameStream, frame: WatchFrame): void;
}

/** The link of a test in which nothing is ever on its way. */
const DIRECT: Link = {
  carry: async (_call, perform) => perform(),
  open: () => {},
  deliver: (stream, frame) => stream.push(frame),
};

/** The frames of one watch as its reader takes them. */
export class FrameStream {
  readonly resource: Resource;
  /** Of the watch: undefined for all namespaces. */
  readonly namespace: string | undefined;
  readonly #frames: WatchFrame[] = [];
  #wake = Promise.withResolvers<void>();
  #end: { readonly error: KubernetesError | undefined } | undefined;

  constructor(resource: Resource, namespace?: string) {
    this.resource = resource;
    this.namespace = namespace;
  }

  get isOver(): boolean {
    return this.#end !== undefined;
  }

  push(frame: WatchFrame): void {
    this.#frames.push(frame);
    this.#wake.resolve();
  }

  /** @param error undefined: the API server ends the watch in order */
  end(error?: KubernetesError): void {
    this.#end ??= { error };
    this.#wake.resolve();
  }

  async *frames(): AsyncGenerator<WatchFrame> {
    for (;;) {
      const frame = this.#frames.shift();
      if (frame !== undefined) yield frame;
      else if (this.#end === undefined) {
        this.#wake = Promise.withResolvers();
        await this.#wake.promise;
      } else if (this.#end.error === undefined) return;
      else throw this.#end.error;
    }
  }
}

const USER = 'the-controller';

export class MemoryApi implements KubernetesApi {
  readonly #server: MemoryApiServer;
  readonly #link: Link;
  readonly #manager: string;

  constructor(server: MemoryApiServer, link: Link = DIRECT, manager: string = FIELD_MANAGER) {
    this.#server = server;
    this.#link = link;
    this.#manager = manager;
  }

  async list(
    resource: Resource,
    options: Selection & { limit?: number; maxBytes?: number | undefined; continue?: string | undefined } = {},
  ): Promise<ListPage> {
    const { namespace, labelSelector, fieldSelector, metadataOnly, limit, continue: token } = options;
    const page = await this.#carry({ verb: 'list', resource, namespace }, () =>
      this.#server.list(resource, {
        namespace,
        labelSelector,
        fieldSelector,
        metadataOnly,
        ...(limit !== undefined && { limit }),
        continue: token,
      }),
    );
    const items = page.items.map((item) => typed(resource, item));
    return { items, resourceVersion: page.resourceVersion, continue: page.continue, bytes: 100 * items.length };
  }

  async watch(
    resource: Resource,
    options: Selection & { resourceVersion: string; timeoutSeconds: number; signal: AbortSignal },
  ): Promise<AsyncIterable<WatchFrame>> {
    const { namespace, labelSelector, fieldSelector, metadataOnly, resourceVersion, timeoutSeconds, signal } = options;
    const call: Call = { verb: 'watch', resource, namespace };
    const stream = new FrameStream(resource, namespace);
    const selection = { namespace, labelSelector, fieldSelector, metadataOnly, resourceVersion };
    const stop = await this.#carry(call, () =>
      this.#server.watch(resource, selection, (frame) => {
        if (!stream.isOver) this.#link.deliver(stream, frame);
      }),
    );
    const end = setTimeout(() => over(), timeoutSeconds * 1000);
    const over = (error?: KubernetesError) => {
      clearTimeout(end);
      stop();
      stream.end(error);
    };
    const abort = () => over(errorOf(call, new ApiRefusal(0, 'Aborted')));
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    this.#link.open(stream);
    return stream.frames();
  }

  async get(resource: Resource, { namespace, name }: ObjectPlace): Promise<KubernetesObject | undefined> {
    const place = placeOf({ namespace, name });
    return await this.#carry({ verb: 'get', resource, namespace, name }, () => this.#server.get(resource, place));
  }

  create(resource: Resource, object: NewObject): Promise<KubernetesObject> {
    const { namespace, name } = object.metadata;
    return this.#carry({ verb: 'create', resource, namespace, name }, () =>
      this.#server.create(resource, object, this.#manager),
    );
  }

  update(resource: Resource, object: NewObject): Promise<KubernetesObject> {
    const { namespace, name } = object.metadata;
    return this.#carry({ verb: 'update', resource, namespace, name }, () =>
      this.#server.update(resource, object, this.#manager),
    );
  }

  apply(
    resource: Resource,
    object: NewObject,
    { subresource }: { readonly subresource?: 'status' } = {},
  ): Promise<KubernetesObject> {
    const { namespace, name } = object.metadata;
    return this.#carry({ verb: 'patch', resource, namespace, name }, () =>
      this.#server.apply(resource, object, { manager: this.#manager, subresource }),
    );
  }

  merge(resource: Resource, patch: PinnedPatch): Promise<KubernetesObject> {
    const { namespace, name } = patch.metadata;
    return this.#carry({ verb: 'patch', resource, namespace, name }, () =>
      this.#server.merge(resource, placeOf({ namespace, name }), patch, this.#manager),
    );
  }

  async delete(
    resource: Resource,
    { namespace, name, uid, resourceVersion }: ObjectPlace & { uid: string; resourceVersion?: string },
  ): Promise<'deleted' | 'gone' | 'changed'> {
    const doomed = { ...placeOf({ namespace, name }), uid, resourceVersion };
    try {
      await this.#carry({ verb: 'delete', resource, namespace, name }, () =>
        this.#server.delete(resource, doomed, this.#manager),
      );
      return 'deleted';
    } catch (error) {
      if (error instanceof KubernetesError && error.status === 404) return 'gone';
      if (error instanceof KubernetesError && error.status === 409) return 'changed';
      throw error;
    }
  }

  async #carry<Answer>(call: Call, perform: () => Answer): Promise<Answer> {
    try {
      return await this.#link.carry(call, perform);
    } catch (error) {
      throw error instanceof ApiRefusal ? errorOf(call, error) : error;
    }
  }
}

/** The error that a call ends with. */
export function errorOf({ verb, resource, namespace }: Call, { status, reason }: ApiRefusal): KubernetesError {
  return new KubernetesError({ status, reason, verb, resource, namespace, user: USER });
}

function placeOf({ namespace, name }: { readonly namespace: string | undefined; readonly name: string }): ObjectPlace {
  return namespace === undefined ? { name } : { namespace, name };
}
