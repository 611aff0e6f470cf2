// What must hold for every response of every test, whatever the test is about (the rows U1, U3, U4, S7, I6, K7 and the
// status rules of RFC 9110), and for everything that leaves the server beside responses: no log line, metric or header
// holds a secret. What it finds fails the test during which it was found.

import type { WireResponse } from './wire-tap.ts';

/** RFC 6749 §5.2: what an error value may be made of. */
const ERROR_TEXT = /^[\x20-\x21\x23-\x5B\x5D-\x7E]*$/;
const ERROR_MEMBERS = new Set(['error', 'error_description', 'error_uri']);
/** Headers whose very purpose is to carry a code, a state or a session to its owner. */
const CARRIERS = new Set(['location', 'set-cookie']);
const SHORTEST_CANARY = 12;

/** Collects faults of responses and remembers secrets. */
export class Oracle {
  readonly #issuer: () => string;
  readonly #canaries = new Set<string>();
  readonly #sentAgain = new Set<string>();
  readonly #faults: string[] = [];
  #voidedCodes = 0;

  constructor(issuer: () => string) {
    this.#issuer = issuer;
  }

  /** Remembers a value that must not turn up anywhere; short ones would be found by chance and are left out. */
  secret(value: string | null | undefined): void {
    if (value && value.length >= SHORTEST_CANARY) this.#canaries.add(value);
  }

  /** The same for a value that a page may hold, in a form by which the browser sends it again. */
  secretButInPages(value: string | null | undefined): void {
    if (value && value.length >= SHORTEST_CANARY) this.#sentAgain.add(value);
  }

  /** Says that the next 503 of the token endpoint is about a code that is void: to try it again would be in vain. */
  expectVoidedCode(): void {
    this.#voidedCodes += 1;
  }

  /** Everything found since the last call. */
  takeFaults(): readonly string[] {
    return this.#faults.splice(0);
  }

  /** Looks for secrets in text that leaves the server beside responses. */
  inspectText(kind: string, text: string): void {
    for (const canary of [...this.#canaries, ...(kind === 'page' ? [] : this.#sentAgain)]) {
      if (text.includes(canary)) this.#faults.push(`${kind} holds the secret ${canary.slice(0, 6)}…: ${text}`);
    }
  }

  inspect(response: WireResponse): void {
    this.#learn(response);
    const { method = '?', target = '?', status } = response;
    const fault = (text: string) => this.#faults.push(`${method} ${target.split('?')[0]} → ${status}: ${text}`);
    this.#inspectHeaders(response, fault);
    inspectStatus(response, fault);
    this.#inspectWait(response, fault);
    if (mediaType(response) === 'text/html') this.#inspectPage(response, fault);
    if (status >= 400 && mediaType(response) === 'application/json' && method !== 'HEAD') inspectError(response, fault);
    if (/\n\s+at .+:\d+:\d+/.test(response.body)) fault('shows a stack');
  }

  #inspectHeaders({ headers, target = '', status, body }: WireResponse, fault: (text: string) => void): void {
    if (one(headers, 'x-content-type-options') !== 'nosniff') fault('lacks nosniff');
    if (!/^[\w-]{10,}$/.test(one(headers, 'x-request-id') ?? '')) fault('lacks X-Request-Id');
    if (one(headers, 'referrer-policy') !== 'no-referrer') fault('lacks Referrer-Policy');
    if (headers.has('strict-transport-security') !== this.#issuer().startsWith('https:')) fault('has the wrong HSTS');
    for (const name of ['x-powered-by', 'server', 'access-control-allow-credentials']) {
      if (headers.has(name)) fault(`has ${name}`);
    }
    const cacheable = status === 200 && /\/(\.well-known|assets|resources)\//.test(target);
    const cacheControl = one(headers, 'cache-control') ?? '';
    if (cacheable ? !cacheControl.startsWith('public, max-age=') : cacheControl !== 'no-store') {
      fault(`has Cache-Control ${cacheControl}`);
    }
    if (body.includes('"access_token"') && one(headers, 'pragma') !== 'no-cache') fault('lacks Pragma');
    for (const [name, values] of headers) {
      if (!CARRIERS.has(name)) this.inspectText(`header ${name}`, values.join());
    }
  }

  /** Every 429 and 503 names when to retry, but those that are not for clients, or where it would be no use. */
  #inspectWait({ status, headers, target = '' }: WireResponse, fault: (text: string) => void): void {
    if (status !== 429 && (status !== 503 || target.startsWith('/readyz'))) return;
    const wait = one(headers, 'retry-after');
    if (status === 503 && target.endsWith('/token') && this.#voidedCodes > 0) {
      this.#voidedCodes -= 1;
      if (wait !== undefined) fault('has Retry-After for a void code');
    } else if (!/^\d+$/.test(wait ?? '')) fault('lacks Retry-After');
  }

  #inspectPage({ headers, body }: WireResponse, fault: (text: string) => void): void {
    const policy = one(headers, 'content-security-policy') ?? '';
    if (!policy.includes("frame-ancestors 'none'") || !policy.includes("default-src 'none'")) fault('has a weak CSP');
    if (/unsafe|\*|https?:\/\//.test(policy)) fault(`has an open CSP ${policy}`);
    if (one(headers, 'x-frame-options') !== 'DENY') fault('may be framed');
    if (/<script/i.test(body)) fault('holds a script');
    this.inspectText('page', body);
  }

  /** Secrets are also what the server itself made up. */
  #learn({ headers, body }: WireResponse): void {
    for (const location of headers.get('location') ?? []) {
      const query = location.split('?')[1];
      this.secret(new URLSearchParams(query).get('code'));
    }
    for (const cookie of headers.get('set-cookie') ?? []) this.secret(/^[^=]+=([^;]*)/.exec(cookie)?.[1]);
    for (const [, value] of body.matchAll(/"(?:access_token|refresh_token|id_token)":"([^"]+)"/g)) this.secret(value);
  }
}

function inspectStatus({ status, headers }: WireResponse, fault: (text: string) => void): void {
  if (status === 307 || status === 308) fault('repeats the body at another place');
  if (status >= 300 && status < 400 && status !== 304 && !headers.has('location')) fault('lacks Location');
  if ((status < 300 || status >= 400) && headers.has('location')) fault('has a Location');
  if (status === 401 && !headers.has('www-authenticate')) fault('lacks WWW-Authenticate');
  if (status === 405 && !headers.has('allow')) fault('lacks Allow');
}

function inspectError({ body }: WireResponse, fault: (text: string) => void): void {
  const members: unknown = JSON.parse(body);
  for (const [name, value] of Object.entries(members as object)) {
    if (!ERROR_MEMBERS.has(name)) fault(`has the member ${name}`);
    if (typeof value !== 'string' || !ERROR_TEXT.test(value)) fault(`has an unclean ${name}`);
  }
  if (!(members as { error?: string }).error) fault('lacks the error member');
}

function one(headers: WireResponse['headers'], name: string): string | undefined {
  return headers.get(name)?.join(' | ');
}

function mediaType({ headers }: WireResponse): string {
  return (one(headers, 'content-type') ?? '').split(';')[0] ?? '';
}
