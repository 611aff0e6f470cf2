// The headers of every answer (security rows U1–U3). An endpoint may replace `cache-control` (metadata, keys) and, with
// `pagePolicy`, the content security policy of a page that posts forms.

/**
 * The headers of every answer. HSTS only where the issuer is https: on loopback http it would lock a
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
 * The content security policy of a page: no content but the style sheet and images of this origin, never framed.
 * @param formAction further sources that a form on the page may redirect to, e.g. the scheme of a redirect URI
 */
export function pagePolicy(formAction: readonly string[] = []): string {
  const target = ["'self'", ...formAction].join(' ');
  return `default-src 'none'; style-src 'self'; img-src 'self'; form-action ${target}; frame-ancestors 'none'; base-uri 'none'`;
}

/** The headers of answers that may be pages, beside {@link commonHeaders}. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': pagePolicy(),
  'x-frame-options': 'DENY',
};

/** `Cache-Control` of the public documents that change rarely: metadata and keys. */
export const PUBLIC_CACHE = 'public, max-age=300';
