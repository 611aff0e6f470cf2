// The port of the API server: the calls that the reconcilers and the reflector make, and the error of a call that
// fails.

import { type KubernetesObject, type ObjectMeta, type Resource, resourceName } from '../objects/resources.ts';

/** The field manager of every write of grantry, as in `managedFields`. */
export const FIELD_MANAGER = 'grantry-controller';

/** Namespace and name of an object; without namespace for cluster-scoped kinds. */
export interface ObjectPlace {
  readonly namespace?: string;
  readonly name: string;
}

/** The objects of a list or watch; by default all of the cluster. */
export interface Selection {
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  /** Of the fields that the API server selects by: of a Secret its name and its `type`. */
  readonly fieldSelector?: string | undefined;
  /** As PartialObjectMetadata: the API server sends neither spec, status nor data. */
  readonly metadataOnly?: boolean | undefined;
  /** Names of arrays that the caller does not read: in a list they may be empty. */
  readonly unread?: readonly string[] | undefined;
}

export interface ListPage {
  readonly items: readonly KubernetesObject[];
  readonly resourceVersion: string;
  /** The token of the next page; undefined after the last. */
  readonly continue: string | undefined;
  /** The size of the response. */
  readonly bytes: number;
}

/** One frame of a watch. */
export type WatchFrame =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: KubernetesObject }
  | { readonly type: 'BOOKMARK'; readonly resourceVersion: string }
  | { readonly type: 'ERROR'; readonly error: KubernetesError };

/** An object to be written; `apiVersion` and `kind` are the resource's. */
export interface NewObject {
  readonly metadata: Partial<Omit<ObjectMeta, 'name'>> & { readonly name: string };
  readonly [field: string]: unknown;
}

/** The fields of an object to be changed, and the version that is changed; null: the field is removed. */
export interface PinnedPatch {
  readonly metadata: ObjectPlace & { readonly resourceVersion: string; readonly [field: string]: unknown };
  readonly [field: string]: unknown;
}

/** Every method throws KubernetesError for each failure that is not one of its return values. */
export interface KubernetesApi {
  /** Throws with reason `OversizedAnswer` when the response has more than `maxBytes`, and reads no more of it. */
  list(
    resource: Resource,
    options?: Selection & {
      readonly limit?: number;
      readonly maxBytes?: number | undefined;
      readonly continue?: string | undefined;
      readonly signal?: AbortSignal;
    },
  ): Promise<ListPage>;

  /**
   * Resolves once the API server accepts the watch. The iteration yields frames until the API server ends the watch,
   * which is no error. It throws KubernetesError when the connection breaks, with reason `UndecodableFrame`, or, when
   * the signal is aborted, with reason `Aborted`.
   */
  watch(
    resource: Resource,
    options: Selection & {
      readonly resourceVersion: string;
      readonly timeoutSeconds: number;
      readonly signal: AbortSignal;
    },
  ): Promise<AsyncIterable<WatchFrame>>;

  /** Undefined when the object does not exist. */
  get(resource: Resource, at: ObjectPlace): Promise<KubernetesObject | undefined>;

  /** Throws with reason `AlreadyExists` when the name is taken. */
  create(resource: Resource, object: NewObject): Promise<KubernetesObject>;

  /** Replaces the whole object. Throws with reason `Conflict` unless `metadata.resourceVersion` is still the latest. */
  update(resource: Resource, object: NewObject): Promise<KubernetesObject>;

  /**
   * Server-side apply as field manager `grantry-controller`, with force. Creates a missing object. With `metadata.uid`
   * or `resourceVersion` in the body it throws with reason `Conflict` (its status may be 422) for any other uid or
   * version; for the status of a custom resource only with `resourceVersion`.
   */
  apply(
    resource: Resource,
    object: NewObject,
    options?: { readonly subresource?: 'status' },
  ): Promise<KubernetesObject>;

  /**
   * A JSON merge patch (RFC 7396), which also removes what another manager wrote. Throws with reason `Conflict` unless
   * `metadata.resourceVersion` is still the latest, and `NotFound` when the object is gone.
   */
  merge(resource: Resource, patch: PinnedPatch): Promise<KubernetesObject>;

  /** `gone`: the object did not exist. `changed`: its uid or version is another one, and it is not deleted. */
  delete(
    resource: Resource,
    at: ObjectPlace & { readonly uid: string; readonly resourceVersion?: string },
  ): Promise<'deleted' | 'gone' | 'changed'>;
}

/** The API server refused or did not answer. The message names verb, resource, namespace, user and response. */
export class KubernetesError extends Error {
  /** The HTTP status; 0 without a response. */
  readonly status: number;
  /** `reason` of the API server's Status (`Forbidden`, `Conflict`, `AlreadyExists`, `Expired` …), or a grantry one. */
  readonly reason: string;
  /** The causes in the Status, such as `NamespaceTerminating`. */
  readonly causes: readonly string[];
  readonly verb: string;
  readonly resource: Resource;
  readonly namespace?: string;
  /** The ServiceAccount or user that made the call. */
  readonly user: string;

  constructor(options: {
    readonly status: number;
    readonly reason: string;
    readonly verb: string;
    readonly resource: Resource;
    readonly namespace?: string | undefined;
    /** The ServiceAccount or user that made the call. */
    readonly user: string;
    /** The message of the API server, or the error of the connection; nothing secret. */
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
