// The end of each way to sign in, by password and by an identity provider: a session under a new id, then the page of ours, the
// consent page, or the redirect to the client.

import { isAbout } from '../../oauth/endpoints/openid-request.ts';
import type { ResourceOwner } from '../../oauth/ports/ports.ts';
import type { UpstreamSignIn } from '../cookies/browser-session.ts';
import type { Exchange } from '../server/endpoint.ts';
import { refuseAtClient } from './refusal-at-client.ts';
import { openInteraction, type SignInFlow, type SignInGoal } from './sign-in-flow.ts';

export interface SignIn {
  readonly owner: ResourceOwner;
  /** Undefined for a local user. */
  readonly upstream?: UpstreamSignIn;
  /** Called with the time of the sign-in, before the answer. */
  readonly onSession?: (authTime: number) => void;
}

/** @returns `outdated`, and nothing is answered, where the credential of the person is another one by now */
export async function answerSignedIn(
  flow: SignInFlow,
  exchange: Exchange,
  goal: SignInGoal,
  { owner, upstream, onSession }: SignIn,
): Promise<'answered' | 'outdated'> {
  const { reply, log, address, request } = exchange;
  const session = await flow.sessions.begin(exchange, owner, upstream);
  if (session === 'outdated') return 'outdated';
  onSession?.(session.authTime);
  const clientId = goal.kind === 'accepted' ? goal.client.clientId : undefined;
  const { provider } = session;
  flow.audit.record({ type: 'login.succeeded', subject: session.subject, clientId, provider, address });
  log.outcome = 'signed_in';
  const status = request.method === 'POST' ? 303 : 302;
  if (goal.kind === 'own_page') reply.redirect(`${flow.basePath}${goal.path}`, status);
  else if (!isAbout(goal.request, session)) refuseAtClient(flow, exchange, goal, 'other_person_signed_in');
  else reply.redirect(await openInteraction(flow, goal, session), status);
  return 'answered';
}
