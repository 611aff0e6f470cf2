// A time limit on a promise.

/** The answer, or an Error with this message after `milliseconds`. The operation itself is not cancelled. */
export async function withTimeout<Answer>(
  answer: Promise<Answer>,
  milliseconds: number,
  message: string,
): Promise<Answer> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(message)), milliseconds);
  try {
    return await Promise.race([answer, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
