// JSON text less what stands in arrays that nobody reads: managedFields and conditions are often longer than all the rest of
// an object, and what was cut out of the text costs nothing to parse.

const [OPEN, CLOSE, QUOTE] = [0x5b, 0x5d, 0x22];
const [COMMA, OPEN_OBJECT, CLOSE_OBJECT] = [0x2c, 0x7b, 0x7d];
/** How an array of objects begins: a search for names would stop at every quote. */
const BEGIN = Buffer.from('[{');

/**
 * The same JSON, but that arrays of objects under these names may be empty: all whose ends are found for certain without
 * reading what is between. What is cut out is not checked.
 * @param json UTF-8; what comes of it takes its place
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

/** Whether what begins here has this name. */
function isNamed(json: Buffer, begin: number, label: Buffer): boolean {
  const start = begin - label.length;
  for (let index = label.length - 1; index >= 0; index--) if (json[start + index] !== label[index]) return false;
  // Behind anything else it is the end of a longer name, with a quote in it.
  return json[start - 1] === COMMA || json[start - 1] === OPEN_OBJECT;
}

/**
 * The end of the members of an array; undefined where it is in doubt, because brackets may be part of a string. The first
 * one that closes anything is the end when none was opened before and it is in no string. It is in none when, behind nothing
 * but the like, a quote stands and then a letter: that quote would end the string, and no letter may follow.
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
