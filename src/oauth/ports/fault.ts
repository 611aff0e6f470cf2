// The description of an unexpected error in a log line.

/** How many causes of the chain are named at most. */
const MOST_CAUSES = 5;

/** `MISCONF` in an error reply of Redis, `disconnected` for a command without a reply. */
const FIRST_WORD = /^-?([A-Za-z_]+)/;

/**
 * The stack, and the name and first word of each cause. No more of a cause: an error reply of Redis can quote the
 * command.
 */
export function describeFault(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const lines = [error.stack ?? error.message];
  let { cause } = error;
  for (; cause instanceof Error && lines.length <= MOST_CAUSES; cause = cause.cause) {
    lines.push(`caused by ${cause.name}: ${FIRST_WORD.exec(cause.message)?.[1] ?? 'no word'}`);
  }
  return lines.join('\n');
}
