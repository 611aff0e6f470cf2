// The headers of every answer (security rows U1–U3). An endpoint may replace `cache-control` (metadata, keys) and, with
// `pagePolicy`, the content security policy of a page that posts forms.

/**
 * What every answer carries, whatever it is. HSTS only where the issuer is https: on loopback http it would lock a
 * developer out.
 */
export function commonHeaders(issuer: string): Readonly<Record<string, string>> {
  return {
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
    ...(issuer.startsWith('https:') && { 'strict-transport-security': 'max-age=31536000' }),
  };
}

/**
 * The content security policy of a page: nothing but our own style sheet, never framed.
 * @param formAction further sources that a form on the page may lead to, e.g. the scheme of a redirect URI.
 */
export function pagePolicy(formAction: readonly string[] = []): string {
  const target = ["'self'", ...formAction].join(' ');
  return `default-src 'none'; style-src 'self'; img-src 'self'; form-action ${target}; frame-ancestors 'none'; base-uri 'none'`;
}

/** What answers that may be pages carry beside {@link commonHeaders}. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': pagePolicy(),
  'x-frame-options': 'DENY',
};

/** `Cache-Control` of what is the same for everybody and changes rarely: metadata and keys. */
export const PUBLIC_CACHE = 'public, max-age=300';
