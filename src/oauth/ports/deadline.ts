// The deadline of a call that leaves the process. It applies whatever the other side does: a socket, a stream or a library does not
// report every end, and an AbortSignal has no effect on a request that is destroyed already.

/**
 * The outcome of work, or the reason of the signal once that aborts, whatever becomes of the work. What the work holds is released by
 * what it was given the signal for.
 */
export async function withDeadline<Result>(signal: AbortSignal, work: Promise<Result>): Promise<Result> {
  const { promise: ended, reject } = Promise.withResolvers<never>();
  const end = () => reject(signal.reason);
  signal.addEventListener('abort', end, { once: true });
  if (signal.aborted) end();
  try {
    return await Promise.race([work, ended]);
  } catch (error) {
    // The work may fail first, of the same signal.
    throw signal.aborted ? signal.reason : error;
  } finally {
    signal.removeEventListener('abort', end);
  }
}
