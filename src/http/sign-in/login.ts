// POST /login: the form for a password. What the sign-in is for, an authorization request or a page of ours, travels in its
// sealed field only. GET /login: the page of a form that was refused.

import { OAuthError } from '../../oauth/ports/error.ts';
import type { NamedPerson, ResourceOwner } from '../../oauth/ports/ports.ts';
import { LOCAL_USERS } from '../../oauth/registry/identity-provider.ts';
import type { KnownPerson } from '../cookies/known-browsers.ts';
import type { PasswordProblem } from '../pages/login-page.ts';
import type { Endpoint, Exchange } from '../server/endpoint.ts';
import { openLoginForm } from './login-form.ts';
import type { LoginAttempt } from './login-limit.ts';
import { sendLoginPage, sendRefusedForm } from './login-step.ts';
import { refuseSource } from './refused-person.ts';
import { isOutdated, leadingTo, type SignInFlow } from './sign-in-flow.ts';
import { isOpenFor, type SignInGoal } from './sign-in-goal.ts';
import { answerSignedIn } from './signed-in.ts';

/** Sign-in with a password. */
export function loginEndpoint(flow: SignInFlow): Endpoint {
  return {
    route: 'login',
    path: '/login',
    handlers: { GET: (exchange) => show(flow, exchange), POST: (exchange) => login(flow, exchange) },
    answers: 'html',
    cors: 'none',
    head: true,
  };
}

/** The page of a refused form; without one the address leads to the account. */
async function show(flow: SignInFlow, exchange: Exchange): Promise<void> {
  if (exchange.parameters.has('refused')) sendRefusedForm(flow, exchange);
  else await leadingTo(flow, '/account')(exchange);
}

async function login(flow: SignInFlow, exchange: Exchange): Promise<void> {
  const { parameters, address } = exchange;
  // 1. The form of this server's page, for this browser, not expired; and the client as it is now
  parameters.rejectDuplicates(['username', 'password']);
  const goal = openLoginForm(flow, exchange);
  if (!goal) return;
  // Before the name and the password are read: the answer depends on neither.
  if (!isOpenFor(goal, LOCAL_USERS)) return refuseSource(flow, exchange, goal);
  const client = goal.kind === 'accepted' ? goal.client : undefined;

  // 2. The person
  const username = parameters.get('username') ?? '';
  const password = parameters.get('password') ?? '';
  // An empty field is refused before the name is read: no counter bounds such requests.
  const person = username === '' || password === '' ? undefined : await flow.owners.lookUp(username);
  const knownBrowser = await findKnownBrowser(flow, exchange, person, client?.uid);
  const attempt = { username, password, address, knownBrowser };
  const check = await checkPassword(flow, attempt);
  if (check.owner === undefined) return refuse(flow, exchange, goal, { ...check, attempt, person });

  // 3. A session under a new id
  const answered = await answerSignedIn(flow, exchange, goal, {
    owner: check.owner,
    onSession: (authTime) => {
      if (person) flow.knownBrowsers.remember(exchange, person, authTime);
    },
  });
  if (answered === 'outdated') {
    const problem = { kind: 'outdated', seconds: OUTDATED_RETRY_SECONDS } as const;
    refuse(flow, exchange, goal, { problem, attempt, person });
  }
}

/** How long this replica's list of users may be behind another's. */
const OUTDATED_RETRY_SECONDS = 5;

interface PasswordAttempt extends LoginAttempt {
  readonly password: string;
}

/** Undefined where the person has not signed in at this browser since the last password and watermark. */
async function findKnownBrowser(
  flow: SignInFlow,
  { request }: Exchange,
  person: NamedPerson | undefined,
  clientUid: string | undefined,
): Promise<KnownPerson | undefined> {
  const known = flow.knownBrowsers.find(request, person);
  if (known === undefined) return undefined;
  const now = await flow.owners.find(known.subject);
  if (now === undefined || known.authTime <= flow.owners.revokedBefore(now)) return undefined;
  return (await isOutdated(flow, known, clientUid)) ? undefined : known;
}

type PasswordCheck =
  | { readonly owner: ResourceOwner }
  | { readonly owner: undefined; readonly problem: PasswordProblem };

/** Limits first, then the password: a wrong one stays counted, one that could not be verified does not. */
async function checkPassword({ loginLimit, owners }: SignInFlow, attempt: PasswordAttempt): Promise<PasswordCheck> {
  const { username, password } = attempt;
  if (username === '' || password === '') {
    const problem = { kind: 'missing', username: username === '', password: password === '' } as const;
    return { owner: undefined, problem };
  }
  const seconds = await loginLimit.begin(attempt);
  if (seconds > 0) return { owner: undefined, problem: { kind: 'tooMany', seconds } };
  let owner: ResourceOwner | undefined;
  try {
    owner = await owners.authenticate(username, password);
  } catch (error) {
    // Keep the original error: a failed refund only leaves the count too high, and store failures have their own
    // metric.
    await loginLimit.refund(attempt).catch(() => undefined);
    if (!(error instanceof OAuthError) || error.code !== 'temporarily_unavailable') throw error;
    return { owner: undefined, problem: { kind: 'busy', seconds: error.retryAfterSeconds } };
  }
  if (owner === undefined) return { owner, problem: { kind: 'wrong' } };
  await loginLimit.refund(attempt);
  const wait = await loginLimit.signedIn(owner.subject);
  return wait > 0 ? { owner: undefined, problem: { kind: 'tooMany', seconds: wait } } : { owner };
}

/**
 * The login page again, with what went wrong. The typed name is in no log: people type passwords there. The audit line
 * has the subject of the name, where it has one.
 */
function refuse(
  flow: SignInFlow,
  exchange: Exchange,
  goal: SignInGoal,
  refusal: {
    readonly problem: PasswordProblem;
    readonly attempt: PasswordAttempt;
    readonly person: NamedPerson | undefined;
  },
): void {
  const { log } = exchange;
  const { problem, person } = refusal;
  const { username, address } = refusal.attempt;
  sendLoginPage(flow, exchange, goal, { username, problem });
  if (problem.kind !== 'missing') {
    const clientId = goal.kind === 'accepted' ? goal.client.clientId : undefined;
    flow.audit.record({ type: 'login.failed', subject: person?.subject, clientId, reason: log.reason, address });
  }
}
