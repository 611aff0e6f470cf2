// The list of the pages of a person's account, and the address of the issuer itself, which leads there.

import type { Endpoint } from '../server/endpoint.ts';
import { leadingTo } from '../sign-in/sign-in-flow.ts';
import { type AccountFlow, accountEndpoint } from './account-flow.ts';
import { applications } from './applications.ts';
import { overview } from './overview.ts';
import { sessions } from './sessions.ts';

/** /account, /account/sessions and /account/applications; / and, of an issuer with a path, the issuer without a slash. */
export function accountEndpoints(flow: AccountFlow): readonly Endpoint[] {
  const pages = [overview, sessions, applications].map((page) => accountEndpoint(flow, page(flow)));
  const roots = flow.basePath === '' ? ['/'] : ['', '/'];
  return [...roots.map((path) => rootEndpoint(flow, path)), ...pages];
}

function rootEndpoint(flow: AccountFlow, path: string): Endpoint {
  return {
    route: 'root',
    path,
    handlers: { GET: leadingTo(flow, '/account') },
    answers: 'html',
    isForBrowsers: true,
    cors: 'none',
    head: true,
  };
}
