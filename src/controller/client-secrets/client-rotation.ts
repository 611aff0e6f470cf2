// When a client's secret is made, taken over, replaced and forgotten: one step from what is to what should be. Pure; the
// steps are carried out by generated-secrets.ts, in this order: `store` into the verifier Secret, `value` into the owner's
// Secret, `settle` into the verifier Secret. After a crash between two of them the next step goes on from what is there.
//
// Of the verifiers the first is the newest. A second one that does not expire means a rotation on its way: the newest is to
// be accepted by all replicas before its secret is handed out. The secret itself is kept nowhere but in this process until
// then: whoever takes over makes another one. A write of who led before may arrive later still: what it made readable stays.

import type { AcceptedVerifier } from '../../admission/client-secrets/client-verifier.ts';
import type { Random } from '../../oauth/ports/ports.ts';
import { generateClientSecret, secretVerifier } from '../../oauth/registry/client-secret.ts';
import type { RotationRequests } from '../reconciling/rotation-requests.ts';
import { changed, expiring, following, type Grace, indexOfSecret, kept, withoutExpired } from './credential-changes.ts';
import type { CredentialState } from './credential-state.ts';

/** A write that was on its way when another process took over arrives within that, if ever. */
const ON_ITS_WAY_SECONDS = 3600;

/** What is, and what the owner wants. Times are epoch milliseconds. */
export interface RotationInput extends Grace {
  readonly uid: string;
  readonly random: Random;
  /** Undefined: only on request. */
  readonly intervalSeconds: number | undefined;
  readonly requests: RotationRequests;
  readonly stored: CredentialState | undefined;
  /** The secret in the owner's Secret that this client may be known by; undefined when there is none. */
  readonly present: string | undefined;
  /** Whether that Secret was left behind by a client that is gone: then its value is kept, known here or not. */
  readonly isLeftBehind: boolean;
  /** A secret that this process made, may have stored the verifier of, and did not get into the owner's Secret yet. */
  readonly undelivered: string | undefined;
  /** Whether every replica accepts what is stored. */
  readonly isServed: boolean;
}

/** What came about. */
export type RotationOutcome =
  /** Nothing. */
  | 'kept'
  | 'created'
  /** A Secret that was there before this object keeps its value. */
  | 'adopted'
  /** The secret was missing or another one; it is replaced, since nobody knows it here. */
  | 'repaired'
  /** A rotation begins: nobody has the new secret yet. */
  | 'begun'
  /** The new secret is handed out; the old one works until the end of its grace. */
  | 'rotated'
  /** The old one stopped working at once. */
  | 'cut'
  /** The grace of an old one is over. */
  | 'expired';

export interface RotationStep {
  readonly outcome: RotationOutcome;
  /** To be stored first; undefined: what is stored stays. */
  readonly store: CredentialState | undefined;
  /** The secret the owner's Secret holds after this step. */
  readonly value: string;
  /** To be stored once the owner's Secret holds `value`. */
  readonly settle: CredentialState | undefined;
  /** A secret that waits for the replicas: to be remembered until it is handed out. */
  readonly undelivered: string | undefined;
  /** When there is something to do again; undefined: when something changes. */
  readonly again: number | undefined;
}

/** The next step. */
export function rotationStep(input: RotationInput): RotationStep {
  const { stored, present, requests, now } = input;
  if (stored === undefined) return firstStep(input);
  const state = withoutExpired(stored, now);
  if (isNew(requests.rotateNow, stored.handled.rotateNow)) return cut(input, state);
  const held = present === undefined ? undefined : indexOfSecret(input.uid, present, state.verifiers);
  if (present !== undefined && held === undefined && input.isLeftBehind) return adopt(input, state, present);
  if (isRotationPending(state)) return stepOnTheWay(input, state, held);
  if (present !== undefined && keepPublished(state, held)) return restorePublished(input, state, { present, held });
  if (present === undefined || held !== 0) return handOut(input, state) ?? repair(input, state, state.verifiers);
  if (isNew(requests.rotateAt, stored.handled.rotateAt) || isDue(input, state)) return begin(input, state, present);
  const isChanged = state.verifiers.length !== stored.verifiers.length;
  return step(input, { outcome: isChanged ? 'expired' : 'kept', value: present, store: isChanged ? state : undefined });
}

function firstStep(input: RotationInput): RotationStep {
  const { uid, now, present, random, requests, undelivered } = input;
  // Its verifier may be stored by now, where no answer came.
  const value = present ?? undelivered ?? generateClientSecret(random);
  const store: CredentialState = {
    revision: 1,
    verifiers: [{ verifier: secretVerifier(uid, value), revision: 1 }],
    rotatedAt: now,
    handedOut: present === undefined ? 0 : 1,
    // What was asked for before this object was known is no request.
    handled: requests,
    writtenFields: undefined,
  };
  return step(input, { outcome: present === undefined ? 'created' : 'adopted', value, store });
}

/** A Secret that came back keeps its value, also where another was made for it meanwhile. */
function adopt(input: RotationInput, state: CredentialState, present: string): RotationStep {
  const entry = entryOf(input, state, present);
  const verifiers = kept(entry, expiring(state.verifiers, input));
  const store = { ...changed(state, verifiers, state.handled), rotatedAt: input.now, handedOut: entry.revision };
  return { ...step(input, { outcome: 'adopted', value: present, store }), again: input.now };
}

/** A rotation has begun: hand out the new secret, wait, or begin again with another one. */
function stepOnTheWay(input: RotationInput, state: CredentialState, held: number | undefined): RotationStep {
  const { present, undelivered } = input;
  const [newest, ...older] = state.verifiers;
  // It was handed out, and then somebody died. Or what somebody was about to hand out arrived after all.
  if (present !== undefined && (held === 0 || (held !== 1 && isNewerThanKnown(state, held)))) {
    return step(input, { outcome: 'rotated', value: present, settle: handedOut(input, state, held) });
  }
  if (present === undefined || held !== 1) return repair(input, state, older);
  if (undelivered === undefined || indexOfSecret(input.uid, undelivered, state.verifiers) !== 0) {
    // It may still arrive: who reads it then is not to be refused.
    const gracePeriodSeconds = Math.max(input.gracePeriodSeconds, ON_ITS_WAY_SECONDS);
    const abandoned = expiring(newest === undefined ? [] : [newest], { ...input, gracePeriodSeconds });
    return begin(input, { ...state, verifiers: [...older, ...abandoned] }, present);
  }
  if (!input.isServed) return { ...step(input, { outcome: 'kept', value: present }), undelivered };
  return step(input, { outcome: 'rotated', value: undelivered, settle: handedOut(input, state, 0) });
}

/** What is stored once the owner has this one of the secrets: the others end with the grace. */
function handedOut(input: RotationInput, state: CredentialState, index: number): CredentialState {
  const { now, requests } = input;
  const current = state.verifiers[index];
  const others = state.verifiers.filter((each) => each !== current);
  const verifiers = kept(current, expiring(others, input));
  return { ...changed(state, verifiers, requests), rotatedAt: now, handedOut: current?.revision ?? 0 };
}

/** Everything that is stored for the new secret; nobody gets it yet. */
function begin(input: RotationInput, state: CredentialState, present: string): RotationStep {
  const { made, entry } = newSecret(input, state);
  const store = {
    ...changed(state, kept(entry, state.verifiers), input.requests),
    handedOut: state.verifiers[0]?.revision ?? 0,
  };
  return { ...step(input, { outcome: 'begun', value: present, store }), undelivered: made };
}

function repair(input: RotationInput, state: CredentialState, older: readonly AcceptedVerifier[]): RotationStep {
  const { made, entry } = newSecret(input, state);
  const verifiers = kept(entry, expiring(older, input));
  const store = { ...changed(state, verifiers, input.requests), rotatedAt: input.now };
  return step(input, { outcome: 'repaired', value: made, store });
}

/** A secret that is stored already and could not be written before. */
function handOut(input: RotationInput, state: CredentialState): RotationStep | undefined {
  const { uid, undelivered } = input;
  if (undelivered === undefined || indexOfSecret(uid, undelivered, state.verifiers) !== 0 || isEnding(state))
    return undefined;
  const isFirst = state.verifiers[0]?.revision === 1;
  return step(input, { outcome: isFirst ? 'created' : 'repaired', value: undelivered });
}

/** The secret that the owner has is the client's again, or after all: what was made instead of it nobody has. */
function restorePublished(
  input: RotationInput,
  state: CredentialState,
  { present, held }: { readonly present: string; readonly held: number },
): RotationStep {
  const { expiresAt: _, ...entry } = state.verifiers[held] as AcceptedVerifier;
  const newer = expiring(state.verifiers.slice(0, held), input);
  const verifiers = [entry, ...newer, ...state.verifiers.slice(held + 1)];
  const store = { ...changed(state, verifiers, state.handled), handedOut: entry.revision };
  return { ...step(input, { outcome: 'kept', value: present, store }), again: input.now };
}

/**
 * Whether the secret that the owner has is to be the client's although it ends: a Secret that was not this client's for a
 * while, and is again, or one that arrived when another secret had been made already.
 */
function keepPublished(state: CredentialState, held: number | undefined): held is number {
  return held === 0 ? isEnding(state) : isNewerThanKnown(state, held);
}

/** Older ones come from somebody who undoes a rotation. */
function isNewerThanKnown({ verifiers, handedOut }: CredentialState, held: number | undefined): held is number {
  return held !== undefined && (verifiers[held]?.revision ?? 0) > handedOut;
}

function isRotationPending({ verifiers: [, second] }: CredentialState): boolean {
  return second !== undefined && second.expiresAt === undefined;
}

/** Whether even the newest secret ends: nobody was there to take another one. */
function isEnding({ verifiers }: CredentialState): boolean {
  return verifiers[0]?.expiresAt !== undefined;
}

function cut(input: RotationInput, state: CredentialState): RotationStep {
  const { made, entry } = newSecret(input, state);
  const store = { ...changed(state, [entry], input.requests), rotatedAt: input.now };
  return step(input, { outcome: 'cut', value: made, store });
}

function step(
  input: RotationInput,
  { store, settle, ...done }: Pick<RotationStep, 'outcome' | 'value'> & Partial<Pick<RotationStep, 'store' | 'settle'>>,
): RotationStep {
  const last = settle ?? store ?? input.stored;
  const times =
    last === undefined ? [] : [nextRotation(input, last), ...last.verifiers.map(({ expiresAt }) => expiresAt)];
  const due = times.filter((time) => time !== undefined);
  return { ...done, store, settle, undelivered: undefined, again: due.length > 0 ? Math.min(...due) : undefined };
}

/** When a rotation is due by its interval; undefined when there is none. Epoch milliseconds. */
export function nextRotation(
  { intervalSeconds }: Pick<RotationInput, 'intervalSeconds'>,
  { rotatedAt }: Pick<CredentialState, 'rotatedAt'>,
): number | undefined {
  return intervalSeconds === undefined ? undefined : rotatedAt + intervalSeconds * 1000;
}

function isDue(input: RotationInput, state: CredentialState): boolean {
  const due = nextRotation(input, state);
  return due !== undefined && due <= input.now;
}

/** An annotation that was taken away asks for nothing. */
function isNew(request: string | undefined, handled: string | undefined): boolean {
  return request !== undefined && request !== handled;
}

function newSecret(input: RotationInput, state: CredentialState) {
  const made = generateClientSecret(input.random);
  return { made, entry: entryOf(input, state, made) };
}

function entryOf({ uid, stored }: RotationInput, { verifiers }: CredentialState, secret: string): AcceptedVerifier {
  return following(uid, secret, [...(stored?.verifiers ?? []), ...verifiers]);
}
