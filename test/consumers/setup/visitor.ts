// The person in front of a program's pages: a browser that follows redirects from origin to origin, signs in where the provider
// asks, and stops at the first page that has no question. Without `fetch`, which says of itself that it does not navigate, so
// that programs refuse it a sign-in.

import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { text } from 'node:stream/consumers';
import { cookieHeader, keepCookie, type Page } from '../../http/sign-in/sign-in-browser.ts';
import type { FilledForm, Provider } from './provider.ts';

const MOST_STEPS = 30;

const HEADERS = {
  accept: 'text/html,*/*;q=0.8',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
  'sec-fetch-site': 'same-origin',
};
const FORM = 'application/x-www-form-urlencoded';

export interface Arrival {
  readonly url: URL;
  readonly page: Page;
}

/** What a visitor has to know of a provider. */
export interface VisitedProvider extends Pick<Provider, 'issuer' | 'authority' | 'answerTo'> {
  readonly endpoints: Pick<Provider['endpoints'], 'endSession'>;
}

/** A server whose pages the person answers. */
export type AnsweredPages = Pick<Provider, 'issuer' | 'answerTo'>;

export class Visitor {
  readonly #provider: VisitedProvider;
  readonly #others: readonly AnsweredPages[];
  /** By origin; a browser has one jar for all ports of a host. */
  readonly #cookies = new Map<string, Map<string, string>>();
  /** How often the person typed a password; consents are not counted. */
  signIns = 0;

  /** @param others other servers on the way whose pages have questions, such as the provider of a provider */
  constructor(provider: VisitedProvider, ...others: readonly AnsweredPages[]) {
    this.#provider = provider;
    this.#others = others;
  }

  /** Opens an address. @returns the page where it ends */
  async visit(address: string): Promise<Arrival> {
    const url = new URL(address);
    return await this.#follow({ url, page: await this.#send('GET', url) });
  }

  /** Opens an address that leads to a redirect URI where no program listens. @returns the whole of that address */
  async answerTo(address: string, redirectUri: string): Promise<URL> {
    const url = new URL(address);
    const arrival = await this.#follow({ url, page: await this.#send('GET', url) }, redirectUri);
    const { location } = arrival.page;
    if (location === undefined) throw new Error(`it ended at ${arrival.url.origin}${arrival.url.pathname}`);
    return new URL(location);
  }

  /** Sends a form from a page of the same origin. @returns the page where it ends */
  async submit(form: FilledForm): Promise<Arrival> {
    return await this.#follow(await this.#post(form));
  }

  /** Signs out at the provider alone, and says yes to its question. */
  async signOut(): Promise<void> {
    const { page } = await this.visit(this.#provider.endpoints.endSession);
    if (page.status !== 200) throw new Error(`the sign-out ended with ${page.status}`);
  }

  /** What a program answers in JSON. */
  async json(address: string): Promise<Record<string, unknown>> {
    const { page, url } = await this.visit(address);
    if (page.status !== 200) throw new Error(`${url.origin}${url.pathname} answered ${page.status}: ${page.body}`);
    return JSON.parse(page.body) as Record<string, unknown>;
  }

  /** @param stop the begin of an address that is not opened */
  async #follow(arrival: Arrival, stop?: string): Promise<Arrival> {
    let { url, page } = arrival;
    for (let step = 0; step < MOST_STEPS; step++) {
      if (page.location !== undefined) {
        if (stop !== undefined && page.location.startsWith(stop)) return { url, page };
        url = new URL(page.location, url);
        page = await this.#send('GET', url);
        continue;
      }
      const asking = [this.#provider, ...this.#others].find(({ issuer }) => new URL(issuer).origin === url.origin);
      const form = asking?.answerTo(page);
      if (form === undefined) return { url, page };
      if (form.fields.password !== undefined) this.signIns++;
      ({ url, page } = await this.#post({ ...form, action: new URL(form.action, url).href }));
    }
    throw new Error(`the visitor went round in circles; the last page was ${url.origin}${url.pathname}`);
  }

  async #post({ action, fields }: FilledForm): Promise<Arrival> {
    const url = new URL(action);
    return { url, page: await this.#send('POST', url, new URLSearchParams(fields).toString()) };
  }

  async #send(method: string, url: URL, body?: string): Promise<Page> {
    const cookies = this.#cookies.get(url.origin) ?? new Map<string, string>();
    this.#cookies.set(url.origin, cookies);
    const cookie = cookieHeader(cookies);
    const form = body === undefined ? {} : { 'content-type': FORM, origin: url.origin };
    const headers = { ...HEADERS, ...form, ...(cookie !== '' && { cookie }) };
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
      const asked = send(url, { method, headers, agent: false, ca: this.#provider.authority }, resolve);
      asked.on('error', reject).end(body);
    });
    for (const line of response.headers['set-cookie'] ?? []) keepCookie(cookies, line);
    const { statusCode = 0, headers: answered } = response;
    return {
      status: statusCode,
      headers: new Headers({ 'content-type': answered['content-type'] ?? '' }),
      body: await text(response),
      location: answered.location,
    };
  }
}
