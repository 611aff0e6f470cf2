// A browser for tests, reduced to what a sign-in needs: a cookie jar, forms, and redirects that are returned and not
// followed automatically, but for the one to the page of a refused login form.

/** One answer, read to its end. */
export interface Page {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
  /** The `Location` header; undefined when there is none. */
  readonly location: string | undefined;
}

type Fields = Readonly<Record<string, string>> | readonly [string, string][];

export class TestBrowser {
  readonly cookies = new Map<string, string>();
  readonly #connect: string;
  readonly #issuer: URL;

  /**
   * @param connect the address the server really listens on, e.g. `http://127.0.0.1:40123`
   * @param issuer the address it is known by
   */
  constructor(connect: string, issuer: string) {
    this.#connect = connect;
    this.#issuer = new URL(issuer);
  }

  /** GET of a path of the server. */
  get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Page> {
    return this.send('GET', path, headers);
  }

  /** POST of a form, as a browser on a page of ours does it unless `headers` say otherwise. */
  async post(path: string, fields: Fields, headers: Readonly<Record<string, string>> = {}): Promise<Page> {
    const answer = await this.submit(path, fields, headers);
    return answer.location?.includes('/login?refused=') ? await this.get(answer.location, headers) : answer;
  }

  /** As {@link post}, but no redirect is followed. */
  submit(path: string, fields: Fields, headers: Readonly<Record<string, string>> = {}): Promise<Page> {
    const type = { 'content-type': 'application/x-www-form-urlencoded' };
    const form = new URLSearchParams(fields);
    return this.send('POST', path, { ...type, origin: this.#issuer.origin, ...headers }, form.toString());
  }

  async send(method: string, path: string, headers: Readonly<Record<string, string>>, body?: string): Promise<Page> {
    const cookie = cookieHeader(this.cookies);
    const response = await fetch(`${this.#connect}${path}`, {
      method,
      redirect: 'manual',
      headers: { accept: 'text/html', ...(cookie && { cookie }), ...headers },
      ...(body !== undefined && { body }),
    });
    for (const line of response.headers.getSetCookie()) keepCookie(this.cookies, line);
    return {
      status: response.status,
      headers: response.headers,
      body: await response.text(),
      location: response.headers.get('location') ?? undefined,
    };
  }
}

/** What a browser makes of a `Set-Cookie` header. */
export function keepCookie(cookies: Map<string, string>, line: string): void {
  const [pair = '', ...attributes] = line.split(/; */);
  const [name = '', ...parts] = pair.split('=');
  const gone = attributes.some((attribute) => /^(max-age=0|expires=thu, 01 jan 1970)/i.test(attribute));
  if (gone) cookies.delete(name);
  else cookies.set(name, parts.join('='));
}

/** What a browser sends back. */
export function cookieHeader(cookies: ReadonlyMap<string, string>): string {
  return [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
}

/** The value of a hidden field of a page; fails the test when the page has none of this name. */
export function hidden(page: Page, name: string): string {
  const value = new RegExp(`<input type="hidden" name="${name}" value="([^"]*)">`).exec(page.body)?.[1];
  if (value === undefined) throw new Error(`no hidden field ${name} on a page with status ${page.status}`);
  return value;
}

/** What a redirect to a client says. */
export function answerOf(page: Page): Readonly<Record<string, string>> {
  if (page.location === undefined) throw new Error(`no redirect but status ${page.status}`);
  return Object.fromEntries(new URL(page.location).searchParams);
}
