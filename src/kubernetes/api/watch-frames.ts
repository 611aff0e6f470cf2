// Decodes the frames of a watch, one a line: a change, a bookmark, or the error with which the API server ends the
// watch.

import { type KubernetesObject, typed } from '../objects/resources.ts';
import { type FailedCall, unreadable, watchEnd } from './api-errors.ts';
import type { WatchFrame } from './kubernetes-api.ts';
import { parsedJson } from './parsed-json.ts';

/** @throws KubernetesError with reason `UndecodableFrame` for a line that is no frame */
export function watchFrame(call: FailedCall, line: string): WatchFrame {
  const { type, object } = (parsedJson(line) ?? {}) as { readonly type?: unknown; readonly object?: unknown };
  if (type === 'ERROR') return { type, error: watchEnd(call, object) };
  const { metadata } = (object ?? {}) as Partial<KubernetesObject>;
  if (typeof metadata?.resourceVersion === 'string') {
    if (type === 'BOOKMARK') return { type, resourceVersion: metadata.resourceVersion };
    const isObject = typeof metadata.name === 'string' && typeof metadata.uid === 'string';
    if (isObject && (type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED')) {
      return { type, object: typed(call.resource, object as KubernetesObject) };
    }
  }
  throw unreadable(call, 0, 'UndecodableFrame');
}
