// What a log says of a fault: where it came from, and in a word what caused it.

/** So many causes of causes are named. */
const MOST_CAUSES = 5;

/** `MISCONF` of what Redis answers, `disconnected` of what was not answered. */
const FIRST_WORD = /^-?([A-Za-z_]+)/;

/** Its stack, and the name and first word of each cause; never more of a cause: Redis can quote what it was sent. */
export function describeFault(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const lines = [error.stack ?? error.message];
  let { cause } = error;
  for (; cause instanceof Error && lines.length <= MOST_CAUSES; cause = cause.cause) {
    lines.push(`caused by ${cause.name}: ${FIRST_WORD.exec(cause.message)?.[1] ?? 'no word'}`);
  }
  return lines.join('\n');
}
