// The login page of a client that is not for the person, or not for a way to sign in: the request stays open for other accounts.

import type { AcceptedAuthorization } from '../../oauth/endpoints/authorization-endpoint.ts';
import { isSilent } from '../../oauth/endpoints/openid-request.ts';
import type { Person } from '../../oauth/ports/ports.ts';
import type { Exchange } from '../server/endpoint.ts';
import { sendLoginPage } from './login-step.ts';
import { refuseAtClient } from './refusal-at-client.ts';
import type { SignInFlow } from './sign-in-flow.ts';
import type { SignInGoal } from './sign-in-goal.ts';

/** For a silent request the error at the client, in place of the page. */
export function refusePerson(
  flow: SignInFlow,
  exchange: Exchange,
  goal: AcceptedAuthorization,
  { subject, username, provider }: Person,
): void {
  const reason = 'person_not_permitted';
  if (isSilent(goal.request)) refuseAtClient(flow, exchange, goal, reason);
  else {
    const asserting = provider && (flow.providers.provider(provider.name)?.displayName ?? provider.name);
    const problem = { kind: 'notForPerson', username, provider: asserting } as const;
    sendLoginPage(flow, exchange, goal, { username: '', problem });
  }
  const { clientId } = goal.client;
  flow.audit.record({
    type: 'person.refused',
    subject,
    clientId,
    reason,
    provider: provider?.name,
    address: exchange.address,
  });
}

/** For a form that this server does not show: of an older page, or of none. */
export function refuseSource(flow: SignInFlow, exchange: Exchange, goal: SignInGoal): void {
  sendLoginPage(flow, exchange, goal, { problem: { kind: 'notOpen' } });
}
