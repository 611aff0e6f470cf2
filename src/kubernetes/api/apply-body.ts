// The body of a server-side apply. The API server reads it as YAML, which refuses characters that JSON has raw: DEL, C1
// controls, noncharacters, a byte order mark.

/** What JSON.stringify writes and YAML may refuse: raw characters outside printable ASCII, halves of surrogate pairs. */
const ODD = /\\(u[0-9a-f]{4}|.)|[^\x20-\x7e]/gu;

/** The object as YAML that is JSON, except that a character beyond U+FFFF is `\U` and eight digits. */
export function applyBody(object: unknown): string {
  return JSON.stringify(object).replace(ODD, (text, sequence: string | undefined) => {
    // JSON.stringify escapes only halves that are alone. No YAML holds one.
    if (sequence !== undefined) return /^ud[89a-f]/.test(sequence) ? '\\ufffd' : text;
    const code = (text.codePointAt(0) ?? 0).toString(16);
    return code.length > 4 ? `\\U${code.padStart(8, '0')}` : `\\u${code.padStart(4, '0')}`;
  });
}
