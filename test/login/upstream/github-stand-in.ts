// A server that answers as GitHub documents, over TLS: on localhost as an Enterprise server, and under the names of github.com for
// those that a proxy leads here. What a person is, is in `api`, by path.

import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import { text } from 'node:stream/consumers';
import { CertificateMaker } from '../../client-certificates.ts';
import { freePort } from '../../free-port.ts';
import { json } from './scripted-provider.ts';

/** Where an Enterprise server has its API. */
const API = '/api/v3';
const NAMES = ['localhost', 'github.com', 'api.github.com'].map((name) => `DNS:${name}`).join();

export class GitHubStandIn {
  /** As `spec.gitHub.host` names it. */
  readonly host: string;
  /** The CA of its certificate. */
  readonly authorities: string;
  /** What the API answers, by path; lists in pages. What is left out is 404. */
  api: Record<string, unknown> = {};
  /** What the token endpoint answers, with status 200. */
  token: Record<string, unknown> = {};
  /** The paths and queries that the API was asked. */
  readonly asked: string[] = [];
  /** The form of the last code. */
  redeemed: URLSearchParams | undefined;
  readonly #server: Server;

  private constructor(
    host: string,
    { server, authorities }: { readonly server: Server; readonly authorities: string },
  ) {
    this.host = host;
    this.authorities = authorities;
    this.#server = server;
    server.on('request', async (request, response) => {
      const url = new URL(request.url ?? '', `https://${host}`);
      if (url.pathname === '/login/oauth/access_token') {
        this.redeemed = new URLSearchParams(await text(request));
        return json(response, this.token);
      }
      const base = request.headers.host === 'api.github.com' ? '' : API;
      if (!url.pathname.startsWith(base)) return json(response, {}, 404);
      const path = url.pathname.slice(base.length);
      this.asked.push(`${path}${url.search}`);
      if (request.headers.authorization !== 'Bearer gho_1') return json(response, {}, 401);
      const answer = this.api[path];
      if (answer === undefined) return json(response, {}, 404);
      if (!Array.isArray(answer)) return json(response, answer);
      const page = Number(url.searchParams.get('page') ?? 1);
      return json(response, answer.slice((page - 1) * 100, page * 100));
    });
  }

  static async start(): Promise<GitHubStandIn> {
    const maker = new CertificateMaker();
    const authority = maker.authority();
    const { certificate, key } = maker.make({ issuer: authority, extensions: [`subjectAltName=${NAMES}`] });
    const port = await freePort();
    const server = createServer({ cert: certificate, key }).listen(port, '127.0.0.1');
    await once(server, 'listening');
    const standIn = new GitHubStandIn(`localhost:${port}`, { server, authorities: authority.certificate });
    standIn.reset();
    maker.remove();
    return standIn;
  }

  /** The person is `ada` again, in the organizations `Corp` and `admins`. */
  reset(): void {
    this.asked.length = 0;
    this.redeemed = undefined;
    this.token = { access_token: 'gho_1', token_type: 'bearer', scope: 'read:org,user:email' };
    this.api = {
      '/user': { id: 17, login: 'ada', name: 'Ada Lovelace', email: 'public@evil.example' },
      '/user/emails': [
        { email: 'other@corp.example.com', primary: false, verified: true },
        { email: 'ada@corp.example.com', primary: true, verified: true },
      ],
      '/user/orgs': [{ login: 'Corp' }, { login: 'admins' }],
      '/user/teams': [
        { slug: 'platform', organization: { login: 'corp' } },
        { slug: 'platform', organization: { login: 'admins' } },
      ],
    };
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
