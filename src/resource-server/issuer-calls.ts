// Calls to the issuer, bounded in time and size and without redirects.

import { withDeadline } from '../oauth/ports/deadline.ts';

/** `fetch`, as far as it is used here: two arguments, the answer of Fetch. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** An answer in JSON. */
export interface JsonAnswer {
  readonly content: unknown;
  /** As received. */
  readonly text: string;
  /** Undefined when absent. */
  readonly cacheControl: string | undefined;
}

export interface IssuerCall {
  readonly url: string;
  readonly init: RequestInit;
  /** `milliseconds`: from the call to the last byte, whatever `fetch` does. */
  readonly bounds: { readonly milliseconds: number; readonly bytes: number };
}

/**
 * The JSON of a 200 answer.
 * @throws Error for a failed, refused, slow or large answer, and for one that is no JSON
 */
export async function callIssuer(fetch: Fetch, call: IssuerCall): Promise<JsonAnswer> {
  const signal = AbortSignal.timeout(call.bounds.milliseconds);
  return await withDeadline(signal, answerTo(fetch, call, signal));
}

async function answerTo(fetch: Fetch, { url, init, bounds }: IssuerCall, signal: AbortSignal): Promise<JsonAnswer> {
  const response = await fetch(url, { ...init, redirect: 'error', signal });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`status ${response.status}`);
  }
  const text = await boundedText(response, bounds.bytes);
  const cacheControl = response.headers.get('cache-control') ?? undefined;
  return { content: JSON.parse(text), text, cacheControl };
}

async function boundedText(response: Response, most: number): Promise<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let [text, bytes] = ['', 0];
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    // Leaving the loop cancels the body.
    if (bytes > most) throw new Error('the answer is too large');
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
