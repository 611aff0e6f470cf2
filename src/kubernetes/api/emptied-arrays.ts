// Empties arrays that no caller reads, in JSON text: managedFields and conditions are often longer than the rest of an
// object, and text that is cut out costs no time to parse.

const [OPEN, CLOSE, QUOTE] = [0x5b, 0x5d, 0x22];
const [COMMA, OPEN_OBJECT, CLOSE_OBJECT] = [0x2c, 0x7b, 0x7d];
/** The start of an array of objects. A search for the names would stop at every quote. */
const BEGIN = Buffer.from('[{');

/**
 * The same JSON, except that arrays of objects under these names may be empty: those whose end is certain without
 * parsing their contents. Contents that are cut out are not checked.
 * @param json UTF-8; the result overwrites it
 */
export function withEmptied(json: Buffer, names: readonly string[]): Buffer {
  const labels = names.map((name) => Buffer.from(`"${name}":`));
  let length = 0;
  let from = 0;
  for (let begin = json.indexOf(BEGIN); begin !== -1; begin = json.indexOf(BEGIN, begin + 1)) {
    if (!labels.some((label) => isNamed(json, begin, label))) continue;
    const end = endOf(json, begin + 1);
    if (end === undefined) continue;
    length += json.copy(json, length, from, begin + 1);
    from = begin = end;
  }
  length += json.copy(json, length, from);
  return json.subarray(0, length);
}

/** Whether the array that begins here has this name. */
function isNamed(json: Buffer, begin: number, label: Buffer): boolean {
  const start = begin - label.length;
  for (let index = label.length - 1; index >= 0; index--) if (json[start + index] !== label[index]) return false;
  // After any other byte the label is the end of a longer name that contains a quote.
  return json[start - 1] === COMMA || json[start - 1] === OPEN_OBJECT;
}

/**
 * The end of the members of an array; undefined where it is uncertain, because brackets may be part of a string. The
 * first closing bracket is the end when no bracket opens before it and it is not in a string. It is not in a string
 * when, after structural bytes only, a quote and then a letter follow: that quote would end the string, and no letter
 * may follow it.
 */
function endOf(json: Buffer, begin: number): number | undefined {
  const end = json.indexOf(CLOSE, begin);
  const other = json.indexOf(OPEN, begin);
  if (end === -1 || (other !== -1 && other < end)) return undefined;
  let next = end;
  while (isStructure(json[next])) next++;
  return json[next] === QUOTE && isLetter(json[next + 1]) ? end : undefined;
}

function isStructure(byte: number | undefined): boolean {
  return byte === CLOSE || byte === CLOSE_OBJECT || byte === COMMA || byte === OPEN_OBJECT;
}

function isLetter(byte = 0): boolean {
  return (byte >= 0x61 && byte <= 0x7a) || (byte >= 0x41 && byte <= 0x5a);
}
