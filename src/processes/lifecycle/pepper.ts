// The pepper, the secret behind handles and sealed fields. One value per line: the first makes new ones, all are
// accepted.

const MINIMUM_CHARACTERS = 32;

/** The first one makes new values, all are accepted. */
export type Peppers = readonly [Uint8Array, ...Uint8Array[]];

/** The peppers in the text of a file. @throws RangeError when there is none, or one is too short to be secret */
export function parsePeppers(text: string): Peppers {
  const [first, ...others] = text.split('\n').flatMap((line) => line.trim() || []);
  if (first === undefined) throw new RangeError('there is no pepper');
  const values = [first, ...others] as const;
  if (values.some((value) => value.length < MINIMUM_CHARACTERS)) {
    throw new RangeError(`a pepper has at least ${MINIMUM_CHARACTERS} characters`);
  }
  return [Buffer.from(first), ...others.map((value) => Buffer.from(value))];
}
