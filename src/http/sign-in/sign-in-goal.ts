// What a sign-in is for, and the ways to sign in that are open for it.

import { isOpenTo } from '../../oauth/access/sign-in-limits.ts';
import type { AcceptedAuthorization } from '../../oauth/endpoints/authorization-endpoint.ts';
import { type IdentityProvider, LOCAL_USERS } from '../../oauth/registry/identity-provider.ts';
import type { AccountChoice, Destination, OwnPath } from '../cookies/sealed-request.ts';
import type { SignInFlow } from './sign-in-flow.ts';

/** What a sign-in is for: an accepted request, or a page of ours. */
export type SignInGoal = (AcceptedAuthorization | { readonly kind: 'own_page'; readonly path: OwnPath }) &
  AccountChoice;

/** The goal as it is sealed. */
export function destinationOf(goal: SignInGoal): Destination {
  // An absent member costs nothing in a cookie.
  const selectsAccount = goal.selectsAccount || undefined;
  return goal.kind === 'accepted' ? { request: goal.request, selectsAccount } : { path: goal.path, selectsAccount };
}

/** The ways to sign in that are open to the client that a sign-in is for. */
export interface WaysIn {
  readonly providers: readonly IdentityProvider[];
  readonly takesPasswords: boolean;
}

/** The ways to sign in; those for a page of ours are all. */
export function waysIn({ providers, owners }: Pick<SignInFlow, 'providers' | 'owners'>, goal: SignInGoal): WaysIn {
  const listed = providers.list();
  const takesPasswords = owners.takesPasswords || listed.length === 0;
  return {
    providers: listed.filter(({ name }) => isOpenFor(goal, name)),
    takesPasswords: takesPasswords && isOpenFor(goal, LOCAL_USERS),
  };
}

/** @param source as {@link isOpenTo} has it */
export function isOpenFor(goal: SignInGoal, source: string): boolean {
  return goal.kind === 'own_page' || isOpenTo(goal.client, source);
}
