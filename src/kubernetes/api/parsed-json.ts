// JSON.parse that returns undefined instead of throwing, for text from outside this process.

/** The value of JSON text; undefined when it is no JSON. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
