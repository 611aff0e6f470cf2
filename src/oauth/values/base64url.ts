// Strict base64url (RFC 4648 §5, RFC 7515 §2).

/**
 * The bytes of a base64url text; undefined unless it is the one spelling of them: no padding, no white space, no
 * characters of base64, no unused bits that are set.
 */
export function decodedBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : undefined;
}
