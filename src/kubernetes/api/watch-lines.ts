// Splits the bytes of a watch into lines. Each line ends with a line feed; bytes after the last one are an incomplete
// line.

/** No object of a cluster is nearly as long. */
const LONGEST_LINE = 64 * 1024 * 1024;
const LINE_FEED = 10;

/** Throws the error of `chunks`, for an overlong line, and with code `HALF_A_FRAME` for an incomplete last line. */
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
