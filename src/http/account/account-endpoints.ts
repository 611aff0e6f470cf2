// The list of the pages of a person's account.

import type { Endpoint } from '../server/endpoint.ts';
import { type AccountFlow, accountEndpoint } from './account-flow.ts';
import { applications } from './applications.ts';
import { overview } from './overview.ts';
import { sessions } from './sessions.ts';

/** /account, /account/sessions and /account/applications. */
export function accountEndpoints(flow: AccountFlow): readonly Endpoint[] {
  return [overview, sessions, applications].map((page) => accountEndpoint(flow, page(flow)));
}
