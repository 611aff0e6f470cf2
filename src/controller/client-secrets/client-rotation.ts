// Plans how a client's secret is created, adopted, rotated, repaired and expired, one step at a time. Pure.
// generated-secrets.ts carries a step out in this order: `store` into the verifier Secret, `value` into the owner's
// Secret, `storeAfterWrite` into the verifier Secret. After a crash the next step continues from what is stored.
//
// The first verifier is the newest. While a rotation is pending, its secret is staged in the owner's Secret, beside the
// present one: all replicas must accept the newest verifier before its secret is published, that is, takes the place of
// the present one. So each leader continues with the same secret, and a late write of a former leader has it as well. A
// staged secret is accepted only by its verifier: a text that another party puts there never becomes the client's secret.

import { type AcceptedVerifier, VERIFIERS_MAX } from '../../admission/client-secrets/client-verifier.ts';
import type { Random } from '../../oauth/ports/ports.ts';
import { generateClientSecret, secretVerifier } from '../../oauth/registry/client-secret.ts';
import type { RotationRequests } from '../reconciling/rotation-requests.ts';
import {
  expiring,
  type Grace,
  indexOfSecret,
  newestVerifiers,
  nextVerifier,
  withoutExpired,
  withVerifiers,
} from './credential-changes.ts';
import type { CredentialState } from './credential-state.ts';

/** The interval at which a pending rotation observes the replicas: a quarter of the time since it began, within bounds. */
const FIRST_POLL_MILLISECONDS = 250;
const LONGEST_POLL_MILLISECONDS = 30_000;

/** The observed state, and what the owner requests. Times are epoch milliseconds. */
export interface RotationInput extends Grace {
  readonly uid: string;
  readonly random: Random;
  /** The interval of rotations; undefined when the secret rotates only on request. */
  readonly intervalSeconds: number | undefined;
  readonly requests: RotationRequests;
  readonly stored: CredentialState | undefined;
  /** The usable client secret in the owner's Secret; undefined when there is none. */
  readonly present: string | undefined;
  /** Whether that Secret is an orphan of a deleted client: its value is adopted, even if its verifier is not stored. */
  readonly isOrphan: boolean;
  /** The secret of the newest verifier, where it is staged in that Secret. */
  readonly staged: string | undefined;
  /** A secret that this process generated and has not written yet, as far as it knows; its verifier may be stored. */
  readonly unwritten: string | undefined;
  /** Whether every replica accepts the stored verifiers. */
  readonly isServed: boolean;
}

/** What a step does. */
export type RotationOutcome =
  /** Nothing visible to the owner. */
  | 'kept'
  | 'created'
  /** The present Secret is taken over with its value. */
  | 'adopted'
  /** The secret was missing, not accepted, or under another name; a new one takes its place, since only its verifier is stored. */
  | 'repaired'
  /** A rotation begins: the verifier of the new secret is stored, and the secret staged. */
  | 'begun'
  /** The new secret is published; the old one is accepted until the end of its grace. */
  | 'rotated'
  /** A new secret replaces the old one, which is rejected at once. */
  | 'cut'
  /** The grace of an old secret is over. */
  | 'expired';

export interface RotationStep {
  readonly outcome: RotationOutcome;
  /** To be stored first; undefined: the stored state stays. */
  readonly store: CredentialState | undefined;
  /** The secret that the owner's Secret holds after this step. */
  readonly value: string;
  /** The secret that is staged there after this step; undefined: none is. */
  readonly next: string | undefined;
  /** To be stored once the owner's Secret holds `value`. */
  readonly storeAfterWrite: CredentialState | undefined;
  /** Whether the owner's Secret has drifted: what is made again and again is made ever less often. */
  readonly isRepair: boolean;
  /** When the next step is due, in epoch milliseconds; undefined when only a change makes it due. */
  readonly requeueAt: number | undefined;
}

/** Plans the next step. */
export function rotationStep(input: RotationInput): RotationStep {
  const { stored, present, requests, now } = input;
  // A client that had no secret until now may have stored keys or accounts, and no verifiers.
  if (stored === undefined || stored.verifiers.length === 0) return firstStep(input);
  const state = withoutExpired(stored, now);
  if (isCutDue(requests, stored)) return cut(input, state);
  const held = present === undefined ? undefined : indexOfSecret(input.uid, present, state.verifiers);
  if (present !== undefined && held === undefined && input.isOrphan) return adopt(input, state, present);
  if (present !== undefined && isRotationPending(state)) return continueRotation(input, state, { present, held });
  if (present === undefined || held === undefined) return writeNewest(input, state) ?? repair(input, state);
  if (held > 0) return replaceOlder(input, state, present);
  if (isEnding(state)) return restore(input, state, present);
  if (isNew(requests.rotateAt, stored.handled.rotateAt) || isDue(input, state)) return begin(input, state, present);
  const isChanged = state.verifiers.length !== stored.verifiers.length;
  return step(input, { outcome: isChanged ? 'expired' : 'kept', value: present, store: isChanged ? state : undefined });
}

function firstStep(input: RotationInput): RotationStep {
  const { uid, now, present, random, requests, unwritten, stored } = input;
  // The verifier of the unwritten secret may be stored: the response to that write may have been lost.
  const value = present ?? unwritten ?? generateClientSecret(random);
  const store: CredentialState = {
    revision: (stored?.revision ?? 0) + 1,
    verifiers: [{ verifier: secretVerifier(uid, value), revision: 1 }],
    rotatedAt: now,
    begunAt: undefined,
    // Annotations that are on the object before its first secret request no rotation.
    handled: requests,
  };
  return step(input, { outcome: present === undefined ? 'created' : 'adopted', value, store });
}

/** An orphaned Secret that is restored keeps its value, even if the controller generated another secret meanwhile. */
function adopt(input: RotationInput, state: CredentialState, present: string): RotationStep {
  const entry = entryOf(input, state, present);
  const verifiers = newestVerifiers(entry, expiring(state.verifiers, input));
  const store = { ...withVerifiers(state, verifiers, state.handled), rotatedAt: input.now };
  return { ...step(input, { outcome: 'adopted', value: present, store }), requeueAt: input.now };
}

/** A rotation is pending: publish the staged secret once the replicas accept it, or start over with another one. */
function continueRotation(
  input: RotationInput,
  state: CredentialState,
  { present, held }: { readonly present: string; readonly held: number | undefined },
): RotationStep {
  // The leader stopped after it published the secret.
  if (held === 0) {
    return step(input, { outcome: 'rotated', value: present, storeAfterWrite: publishedState(input, state) });
  }
  const next = newestSecret(input, state);
  if (next === undefined && held === undefined) return repair(input, state);
  // The lost secret stays accepted for now: it may have been published under a former name.
  if (next === undefined) return { ...begin(input, state, present), isRepair: true };
  if (held !== undefined && input.staged !== next) return step(input, { outcome: 'begun', value: present, next });
  // A present secret that is not accepted is replaced at once.
  if (held !== undefined && !input.isServed) return step(input, { outcome: 'kept', value: present, next });
  return step(input, { outcome: 'rotated', value: next, storeAfterWrite: publishedState(input, state) });
}

/** The secret of the newest verifier, where it is staged or in memory; undefined: it is lost. */
function newestSecret({ uid, staged, unwritten }: RotationInput, { verifiers }: CredentialState): string | undefined {
  // What is staged may be a copy of a secret that has expired.
  return [staged, unwritten].find((secret) => secret !== undefined && indexOfSecret(uid, secret, verifiers) === 0);
}

/** The state after the newest secret is published: the others expire with the grace. */
function publishedState(input: RotationInput, state: CredentialState): CredentialState {
  const [newest, ...others] = state.verifiers;
  const verifiers = newestVerifiers(newest, expiring(others, input));
  return { ...withVerifiers(state, verifiers, input.requests), rotatedAt: input.now };
}

/** Starts a rotation: stores the verifier of a new secret, and stages it beside the present one. */
function begin(input: RotationInput, state: CredentialState, present: string): RotationStep {
  const { secret, store } = begunState(input, state);
  return step(input, { outcome: 'begun', value: present, next: secret, store });
}

/** Another secret, and the state in which a rotation to it is pending: those before it do not expire by it yet. */
function begunState(input: RotationInput, state: CredentialState) {
  const { secret, entry } = newSecret(input, state);
  // Of too many that were made and could not be written, the last one goes, and not the one that is in force.
  const isFull = isRotationPending(state) && state.verifiers.length >= VERIFIERS_MAX;
  const verifiers = newestVerifiers(entry, isFull ? state.verifiers.slice(1) : state.verifiers);
  return { secret, store: { ...withVerifiers(state, verifiers, input.requests), begunAt: input.now } };
}

/**
 * The Secret holds a secret from before the newest one, as after a restore, or where the client gives a former name again: a
 * rotation to the newest one, if that is in no Secret yet, and else to another one.
 */
function replaceOlder(input: RotationInput, state: CredentialState, present: string): RotationStep {
  const next = isEnding(state) ? undefined : newestSecret(input, state);
  if (next === undefined) return { ...begin(input, state, present), isRepair: true };
  const store = { ...state, revision: state.revision + 1, begunAt: input.now };
  return step(input, { outcome: 'begun', value: present, next, store, isRepair: true });
}

/** There is no secret to stage another one beside: that is published at once. */
function repair(input: RotationInput, state: CredentialState): RotationStep {
  const { secret, store } = begunState(input, state);
  const storeAfterWrite = publishedState(input, store);
  return step(input, { outcome: 'repaired', value: secret, store, storeAfterWrite, isRepair: true });
}

/** Writes the newest secret: its verifier is stored, an earlier write of the owner's Secret failed. */
function writeNewest(input: RotationInput, state: CredentialState): RotationStep | undefined {
  const value = newestSecret(input, state);
  if (value === undefined || isEnding(state)) return undefined;
  const isFirst = state.verifiers[0]?.revision === 1;
  const outcome = isFirst ? 'created' : 'repaired';
  const storeAfterWrite = isRotationPending(state) ? publishedState(input, state) : undefined;
  return step(input, { outcome, value, storeAfterWrite, isRepair: !isFirst });
}

/** The Secret was another party's for a while, and holds the client's secret again, which stays the client's. */
function restore(input: RotationInput, state: CredentialState, present: string): RotationStep {
  const [newest, ...others] = state.verifiers;
  const { expiresAt: _, ...entry } = newest as AcceptedVerifier;
  const store = withVerifiers(state, [entry, ...others], state.handled);
  return { ...step(input, { outcome: 'kept', value: present, store }), requeueAt: input.now };
}

function isRotationPending({ begunAt }: CredentialState): boolean {
  return begunAt !== undefined;
}

/** Whether even the newest secret expires, so that no accepted one would be left. */
function isEnding({ verifiers }: CredentialState): boolean {
  return verifiers[0]?.expiresAt !== undefined;
}

function cut(input: RotationInput, state: CredentialState): RotationStep {
  const { secret, entry } = newSecret(input, state);
  const store = { ...withVerifiers(state, [entry], input.requests), rotatedAt: input.now };
  return step(input, { outcome: 'cut', value: secret, store });
}

function step(
  input: RotationInput,
  {
    store,
    storeAfterWrite,
    next,
    isRepair = false,
    ...done
  }: Pick<RotationStep, 'outcome' | 'value'> &
    Partial<Pick<RotationStep, 'store' | 'next' | 'storeAfterWrite' | 'isRepair'>>,
): RotationStep {
  const last = storeAfterWrite ?? store ?? input.stored;
  return { ...done, store, next, storeAfterWrite, isRepair, requeueAt: last && nextStep(input, last) };
}

function nextStep(input: RotationInput, state: CredentialState): number | undefined {
  const { now } = input;
  const { begunAt, verifiers } = state;
  if (begunAt !== undefined) {
    return now + Math.min(LONGEST_POLL_MILLISECONDS, Math.max(FIRST_POLL_MILLISECONDS, (now - begunAt) / 4));
  }
  const times = [nextRotation(input, state), ...verifiers.map(({ expiresAt }) => expiresAt)];
  const due = times.filter((time) => time !== undefined);
  return due.length > 0 ? Math.min(...due) : undefined;
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

/** Whether the owner requests that the secrets so far end at once. */
export function isCutDue({ rotateNow }: RotationRequests, { handled }: Pick<CredentialState, 'handled'>): boolean {
  return isNew(rotateNow, handled.rotateNow);
}

/** Whether a request has not been handled yet. A removed annotation requests nothing. */
function isNew(request: string | undefined, handled: string | undefined): boolean {
  return request !== undefined && request !== handled;
}

/** Another secret; the same one again where the write of its verifier was refused or not answered. */
function newSecret(input: RotationInput, state: CredentialState) {
  const { uid, unwritten, stored } = input;
  const isUnused = unwritten !== undefined && indexOfSecret(uid, unwritten, stored?.verifiers ?? []) === undefined;
  const secret = isUnused ? unwritten : generateClientSecret(input.random);
  return { secret, entry: entryOf(input, state, secret) };
}

function entryOf({ uid, stored }: RotationInput, { verifiers }: CredentialState, secret: string): AcceptedVerifier {
  return nextVerifier(uid, secret, [...(stored?.verifiers ?? []), ...verifiers]);
}
