// The end of each way to sign in, by password and by an identity provider: a session under a new id, then the page of ours, the
// consent page, or the redirect to the client. A person who may not use the client sees the login page again.

import { maySignIn } from '../../oauth/access/sign-in-limits.ts';
import type { AcceptedAuthorization } from '../../oauth/endpoints/authorization-endpoint.ts';
import { isAbout } from '../../oauth/endpoints/openid-request.ts';
import type { Person, ResourceOwner } from '../../oauth/ports/ports.ts';
import type { UpstreamSignIn } from '../cookies/browser-session.ts';
import type { Exchange } from '../server/endpoint.ts';
import { refuseAtClient, refuseUnseen } from './refusal-at-client.ts';
import { refusePerson } from './refused-person.ts';
import { openInteraction, type SignInFlow } from './sign-in-flow.ts';
import type { SignInGoal } from './sign-in-goal.ts';

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
  const refused = await personToRefuse(flow, goal, owner);
  if (refused !== undefined) {
    refusePerson(flow, exchange, refused.goal, refused.person);
    return 'answered';
  }
  const session = await flow.sessions.begin(exchange, owner, upstream);
  if (session === 'outdated') return 'outdated';
  onSession?.(session.authTime);
  const clientId = goal.kind === 'accepted' ? goal.client.clientId : undefined;
  const { provider } = session;
  flow.audit.record({ type: 'login.succeeded', subject: session.subject, clientId, provider, address });
  log.outcome = 'signed_in';
  const status = request.method === 'POST' ? 303 : 302;
  if (goal.kind === 'own_page') reply.redirect(`${flow.basePath}${goal.path}`, status);
  else if (!isAbout(goal.request, session)) {
    const refuse = upstream === undefined ? refuseAtClient : refuseUnseen;
    refuse(flow, exchange, goal, 'other_person_signed_in');
  } else reply.redirect(await openInteraction(flow, goal, session), status);
  return 'answered';
}

/** A sign-in begins no session where its client is not for the person: the browser keeps the session that it has. */
async function personToRefuse(
  { owners }: SignInFlow,
  goal: SignInGoal,
  { subject }: ResourceOwner,
): Promise<{ readonly goal: AcceptedAuthorization; readonly person: Person } | undefined> {
  if (goal.kind !== 'accepted' || goal.client.signIn === undefined) return undefined;
  const person = await owners.find(subject);
  return person === undefined || maySignIn(goal.client, person) ? undefined : { goal, person };
}
