// The frames of a watch, one a line: a change, a bookmark, or the error with which the API server ends the watch. Each line
// ends with a line feed; bytes after the last one are an incomplete line.

import { type KubernetesObject, typed } from '../objects/resources.ts';
import { type FailedCall, unreadable, watchEnd } from './api-errors.ts';
import type { WatchFrame } from './kubernetes-api.ts';
import { parsedJson } from './parsed-json.ts';

/** No object of a cluster is nearly as long. */
const LONGEST_LINE = 64 * 1024 * 1024;
const LINE_FEED = 10;

/**
 * Decodes the response of a watch. Throws the error of `chunks`, for an overlong line, and with code `HALF_A_FRAME` for an
 * incomplete last line.
 * @throws KubernetesError with reason `UndecodableFrame` for a line that is no frame
 */
export async function* watchFrames(call: FailedCall, chunks: AsyncIterable<unknown>): AsyncGenerator<WatchFrame> {
  for await (const line of linesOf(chunks)) yield watchFrame(call, line);
}

async function* linesOf(chunks: AsyncIterable<unknown>): AsyncGenerator<string> {
  let begun: Buffer[] = [];
  let length = 0;
  for await (const bytes of chunks) {
    const chunk = bytes as Buffer;
    let from = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, from)) {
      const last = chunk.subarray(from, end);
      const line = begun.length === 0 ? last : Buffer.concat([...begun, last]);
      begun = [];
      length = 0;
      from = end + 1;
      if (line.length > 0) yield line.toString('utf8');
    }
    if (from < chunk.length) begun.push(chunk.subarray(from));
    length += chunk.length - from;
    if (length > LONGEST_LINE) throw new Error('a frame without end');
  }
  if (length > 0) throw Object.assign(new Error('the watch ended within a frame'), { code: 'HALF_A_FRAME' });
}

function watchFrame(call: FailedCall, line: string): WatchFrame {
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
