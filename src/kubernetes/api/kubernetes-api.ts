// Calls to the API server: what the reconcilers and the reflector may ask of it, and how it says no.

import { type KubernetesObject, type ObjectMeta, type Resource, resourceName } from '../objects/resources.ts';

/** The name that what grantry applies is known by in `managedFields`. */
export const FIELD_MANAGER = 'grantry-controller';

/** Where an object is; without namespace for cluster-scoped kinds. */
export interface ObjectPlace {
  readonly namespace?: string;
  readonly name: string;
}

/** Which objects a list or watch is about; all of the cluster unless narrowed. */
export interface Selection {
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  /** As PartialObjectMetadata: without spec, status and data, which then never reach this process. */
  readonly metadataOnly?: boolean | undefined;
  /** Names of arrays that nobody reads: in a list they may be empty. */
  readonly unread?: readonly string[] | undefined;
}

export interface ListPage {
  readonly items: readonly KubernetesObject[];
  readonly resourceVersion: string;
  /** What the next page is asked with; undefined after the last. */
  readonly continue: string | undefined;
}

/** One frame of a watch as it came. */
export type WatchFrame =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: KubernetesObject }
  | { readonly type: 'BOOKMARK'; readonly resourceVersion: string }
  | { readonly type: 'ERROR'; readonly error: KubernetesError };

/** An object to be written; `apiVersion` and `kind` are the resource's. */
export interface NewObject {
  readonly metadata: Partial<Omit<ObjectMeta, 'name'>> & { readonly name: string };
  readonly [field: string]: unknown;
}

/** Every method throws KubernetesError for what it does not answer in words. */
export interface KubernetesApi {
  list(
    resource: Resource,
    options?: Selection & {
      readonly limit?: number;
      readonly continue?: string | undefined;
      readonly signal?: AbortSignal;
    },
  ): Promise<ListPage>;

  /**
   * Resolves once the API server watches; then frames until it ends the watch, which is no error. The iteration throws
   * KubernetesError when the connection breaks, or with reason `UndecodableFrame`; aborting the signal ends it too, with
   * reason `Aborted`.
   */
  watch(
    resource: Resource,
    options: Selection & {
      readonly resourceVersion: string;
      readonly timeoutSeconds: number;
      readonly signal: AbortSignal;
    },
  ): Promise<AsyncIterable<WatchFrame>>;

  /** Undefined when there is none. */
  get(resource: Resource, at: ObjectPlace): Promise<KubernetesObject | undefined>;

  /** Throws with reason `AlreadyExists` when the name is taken. */
  create(resource: Resource, object: NewObject): Promise<KubernetesObject>;

  /** Replaces the whole object. Throws with reason `Conflict` unless `metadata.resourceVersion` is still the latest. */
  update(resource: Resource, object: NewObject): Promise<KubernetesObject>;

  /**
   * Server-side apply as field manager `grantry-controller`, with force. Creates what is not there. With `metadata.uid` or
   * `resourceVersion` in the body it throws with reason `Conflict` (its status may be 422) for any other object or state than that;
   * for the status of a custom resource only with `resourceVersion`.
   */
  apply(
    resource: Resource,
    object: NewObject,
    options?: { readonly subresource?: 'status' },
  ): Promise<KubernetesObject>;

  /** `gone`: there was none. `changed`: another uid or version is there, and stays. */
  delete(
    resource: Resource,
    at: ObjectPlace & { readonly uid: string; readonly resourceVersion?: string },
  ): Promise<'deleted' | 'gone' | 'changed'>;
}

/** The API server refused, or did not answer. The message names verb, resource, namespace, who asked, and the answer. */
export class KubernetesError extends Error {
  /** The HTTP status; 0 when there was no answer. */
  readonly status: number;
  /** `reason` of the API server's Status (`Forbidden`, `Conflict`, `AlreadyExists`, `Expired` …), or a word of our own. */
  readonly reason: string;
  /** What the Status names as causes, such as `NamespaceTerminating`. */
  readonly causes: readonly string[];
  readonly verb: string;
  readonly resource: Resource;
  readonly namespace?: string;
  /** The ServiceAccount or user that asked. */
  readonly user: string;

  constructor(options: {
    readonly status: number;
    readonly reason: string;
    readonly verb: string;
    readonly resource: Resource;
    readonly namespace?: string | undefined;
    /** The ServiceAccount or user that asked. */
    readonly user: string;
    /** What the API server said, or the fault of the connection; nothing secret. */
    readonly detail?: string | undefined;
    readonly causes?: readonly string[];
  }) {
    const { status, reason, verb, resource, namespace, user, detail } = options;
    const where = namespace === undefined ? '' : ` in namespace ${namespace}`;
    const answer = status === 0 ? reason : `${status} ${reason}`;
    super(
      `${verb} ${resourceName(resource)}${where} as ${user}: ${answer}${detail === undefined ? '' : ` (${detail})`}`,
    );
    this.name = 'KubernetesError';
    this.status = status;
    this.reason = reason;
    this.causes = options.causes ?? [];
    this.verb = verb;
    this.resource = resource;
    this.user = user;
    if (namespace !== undefined) this.namespace = namespace;
  }
}
