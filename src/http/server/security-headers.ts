// The headers of every answer (security rows U1–U3). An endpoint may replace `cache-control` (metadata, keys) and the
// content security policy of a page whose forms end elsewhere.

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

/** No content but the style sheet and images of this origin, never framed. */
const CONTENT_POLICY = "default-src 'none'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'";

/** The headers of answers that may be pages, beside {@link commonHeaders}: the forms of a page end at this origin. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': `${CONTENT_POLICY}; form-action 'self'`,
  'x-frame-options': 'DENY',
};

/**
 * In place of {@link PAGE_HEADERS} for a page with a form that may end at a client or an identity provider. Chromium holds every
 * later redirect against `form-action`, also those of the client, and no list names their targets (docs/adr/0049).
 */
export const LEAVING_PAGE_HEADERS: Readonly<Record<string, string>> = {
  ...PAGE_HEADERS,
  'content-security-policy': CONTENT_POLICY,
};

/** `Cache-Control` of the public documents that change rarely: metadata and keys. */
export const PUBLIC_CACHE = 'public, max-age=300';
