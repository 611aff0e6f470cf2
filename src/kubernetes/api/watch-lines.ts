// The lines of a watch as they come in: each ends with a line feed, and what comes after the last one is no line.

/** No object of a cluster comes near it. */
const LONGEST_LINE = 64 * 1024 * 1024;
const LINE_FEED = 10;

/** Throws when the bytes do, when a line has no end, and with code `HALF_A_FRAME` when the bytes end within one. */
export async function* watchLines(chunks: AsyncIterable<unknown>): AsyncGenerator<string> {
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
