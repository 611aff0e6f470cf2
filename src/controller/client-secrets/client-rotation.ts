// Plans how a client's secret is created, adopted, rotated, repaired and expired, one step at a time. Pure.
// generated-secrets.ts carries a step out in this order: `store` into the verifier Secret, `value` into the owner's
// Secret, `storeAfterWrite` into the verifier Secret. After a crash the next step continues from what is stored.
//
// The first verifier is the newest. A second verifier that does not expire means a pending rotation: all replicas must
// accept the newest verifier before its secret is published, that is, written into the owner's Secret. Until then only
// this process has the secret, so a new leader generates another one. A late write of a former leader may still arrive:
// a secret that it published stays accepted.

import type { AcceptedVerifier } from '../../admission/client-secrets/client-verifier.ts';
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

/** A write that a former leader had sent before the fail-over arrives within this time, if it arrives. */
const LATE_WRITE_SECONDS = 3600;

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
  /** A secret that this process generated and has not published yet; its verifier may be stored. */
  readonly pendingSecret: string | undefined;
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
  /** The secret was missing or changed; a new one replaces it, since only its verifier is stored. */
  | 'repaired'
  /** A rotation begins: the verifier of the new secret is stored, the secret is not published yet. */
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
  /** To be stored once the owner's Secret holds `value`. */
  readonly storeAfterWrite: CredentialState | undefined;
  /** A secret that the replicas do not all accept yet: the process keeps it in memory until it is published. */
  readonly pendingSecret: string | undefined;
  /** When the next step is due, in epoch milliseconds; undefined when only a change makes it due. */
  readonly requeueAt: number | undefined;
}

/** Plans the next step. */
export function rotationStep(input: RotationInput): RotationStep {
  const { stored, present, requests, now } = input;
  // A client that had no secret until now may have stored keys or accounts, and no verifiers.
  if (stored === undefined || stored.verifiers.length === 0) return firstStep(input);
  const state = withoutExpired(stored, now);
  if (isNew(requests.rotateNow, stored.handled.rotateNow)) return cut(input, state);
  const held = present === undefined ? undefined : indexOfSecret(input.uid, present, state.verifiers);
  if (present !== undefined && held === undefined && input.isOrphan) return adopt(input, state, present);
  if (isRotationPending(state)) return continueRotation(input, state, held);
  if (present !== undefined && keepPublished(state, held)) return restorePublished(input, state, { present, held });
  if (present === undefined || held !== 0) return publishPending(input, state) ?? repair(input, state, state.verifiers);
  if (isNew(requests.rotateAt, stored.handled.rotateAt) || isDue(input, state)) return begin(input, state, present);
  const isChanged = state.verifiers.length !== stored.verifiers.length;
  return step(input, { outcome: isChanged ? 'expired' : 'kept', value: present, store: isChanged ? state : undefined });
}

function firstStep(input: RotationInput): RotationStep {
  const { uid, now, present, random, requests, pendingSecret, stored } = input;
  // The verifier of the pending secret may be stored: the response to that write may have been lost.
  const value = present ?? pendingSecret ?? generateClientSecret(random);
  const store: CredentialState = {
    revision: (stored?.revision ?? 0) + 1,
    verifiers: [{ verifier: secretVerifier(uid, value), revision: 1 }],
    rotatedAt: now,
    publishedRevision: present === undefined ? 0 : 1,
    // Annotations that are on the object before its first secret request no rotation.
    handled: requests,
  };
  return step(input, { outcome: present === undefined ? 'created' : 'adopted', value, store });
}

/** An orphaned Secret that is restored keeps its value, even if the controller generated another secret meanwhile. */
function adopt(input: RotationInput, state: CredentialState, present: string): RotationStep {
  const entry = entryOf(input, state, present);
  const verifiers = newestVerifiers(entry, expiring(state.verifiers, input));
  const store = {
    ...withVerifiers(state, verifiers, state.handled),
    rotatedAt: input.now,
    publishedRevision: entry.revision,
  };
  return { ...step(input, { outcome: 'adopted', value: present, store }), requeueAt: input.now };
}

/** A rotation is pending: publish the new secret, wait for the replicas, or start over with another secret. */
function continueRotation(input: RotationInput, state: CredentialState, held: number | undefined): RotationStep {
  const { present, pendingSecret } = input;
  const [newest, ...older] = state.verifiers;
  // The leader crashed after it published the secret, or the late write of a former leader arrived.
  if (present !== undefined && (held === 0 || (held !== 1 && isNewerThanPublished(state, held)))) {
    return step(input, { outcome: 'rotated', value: present, storeAfterWrite: publishedState(input, state, held) });
  }
  if (present === undefined || held !== 1) return repair(input, state, older);
  if (pendingSecret === undefined || indexOfSecret(input.uid, pendingSecret, state.verifiers) !== 0) {
    // The late write of the abandoned secret may still arrive: a client that then reads that secret must be accepted.
    const gracePeriodSeconds = Math.max(input.gracePeriodSeconds, LATE_WRITE_SECONDS);
    const abandoned = expiring(newest === undefined ? [] : [newest], { ...input, gracePeriodSeconds });
    return begin(input, { ...state, verifiers: [...older, ...abandoned] }, present);
  }
  if (!input.isServed) return { ...step(input, { outcome: 'kept', value: present }), pendingSecret };
  return step(input, { outcome: 'rotated', value: pendingSecret, storeAfterWrite: publishedState(input, state, 0) });
}

/** The state after the secret at `index` is published: the others expire with the grace. */
function publishedState(input: RotationInput, state: CredentialState, index: number): CredentialState {
  const { now, requests } = input;
  // One that a late write published was to end: it is the client's now.
  const { expiresAt: _, ...current } = state.verifiers[index] as AcceptedVerifier;
  const others = state.verifiers.filter((_each, other) => other !== index);
  const verifiers = newestVerifiers(current, expiring(others, input));
  return { ...withVerifiers(state, verifiers, requests), rotatedAt: now, publishedRevision: current.revision };
}

/** Starts a rotation: stores the verifier of a new secret, and keeps the present one published. */
function begin(input: RotationInput, state: CredentialState, present: string): RotationStep {
  const { secret, entry } = newSecret(input, state);
  const store = {
    ...withVerifiers(state, newestVerifiers(entry, state.verifiers), input.requests),
    publishedRevision: state.verifiers[0]?.revision ?? 0,
  };
  return { ...step(input, { outcome: 'begun', value: present, store }), pendingSecret: secret };
}

function repair(input: RotationInput, state: CredentialState, older: readonly AcceptedVerifier[]): RotationStep {
  const { secret, entry } = newSecret(input, state);
  const verifiers = newestVerifiers(entry, expiring(older, input));
  const store = { ...withVerifiers(state, verifiers, input.requests), rotatedAt: input.now };
  return step(input, { outcome: 'repaired', value: secret, store });
}

/** Publishes the pending secret: its verifier is stored, an earlier write of the owner's Secret failed. */
function publishPending(input: RotationInput, state: CredentialState): RotationStep | undefined {
  const { uid, pendingSecret } = input;
  if (pendingSecret === undefined || indexOfSecret(uid, pendingSecret, state.verifiers) !== 0 || isEnding(state))
    return undefined;
  const isFirst = state.verifiers[0]?.revision === 1;
  return step(input, { outcome: isFirst ? 'created' : 'repaired', value: pendingSecret });
}

/** Keeps the published secret as the client's: the newer secrets expire with the grace, since none was published. */
function restorePublished(
  input: RotationInput,
  state: CredentialState,
  { present, held }: { readonly present: string; readonly held: number },
): RotationStep {
  const { expiresAt: _, ...entry } = state.verifiers[held] as AcceptedVerifier;
  const newer = expiring(state.verifiers.slice(0, held), input);
  const verifiers = [entry, ...newer, ...state.verifiers.slice(held + 1)];
  const store = { ...withVerifiers(state, verifiers, state.handled), publishedRevision: entry.revision };
  return { ...step(input, { outcome: 'kept', value: present, store }), requeueAt: input.now };
}

/**
 * Whether the published secret stays the client's although it expires: the Secret was replaced for a while and is the
 * client's again, or a late write published the secret after another one had been generated.
 */
function keepPublished(state: CredentialState, held: number | undefined): held is number {
  return held === 0 ? isEnding(state) : isNewerThanPublished(state, held);
}

/**
 * Whether the held secret is newer than the newest one known to be published. An older one means that the owner's
 * Secret was reset to a secret from before a rotation.
 */
function isNewerThanPublished(
  { verifiers, publishedRevision }: CredentialState,
  held: number | undefined,
): held is number {
  return held !== undefined && (verifiers[held]?.revision ?? 0) > publishedRevision;
}

function isRotationPending({ verifiers: [, second] }: CredentialState): boolean {
  return second !== undefined && second.expiresAt === undefined;
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
    ...done
  }: Pick<RotationStep, 'outcome' | 'value'> & Partial<Pick<RotationStep, 'store' | 'storeAfterWrite'>>,
): RotationStep {
  const last = storeAfterWrite ?? store ?? input.stored;
  const times =
    last === undefined ? [] : [nextRotation(input, last), ...last.verifiers.map(({ expiresAt }) => expiresAt)];
  const due = times.filter((time) => time !== undefined);
  return {
    ...done,
    store,
    storeAfterWrite,
    pendingSecret: undefined,
    requeueAt: due.length > 0 ? Math.min(...due) : undefined,
  };
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

/** Whether a request has not been handled yet. A removed annotation requests nothing. */
function isNew(request: string | undefined, handled: string | undefined): boolean {
  return request !== undefined && request !== handled;
}

function newSecret(input: RotationInput, state: CredentialState) {
  const secret = generateClientSecret(input.random);
  return { secret, entry: entryOf(input, state, secret) };
}

function entryOf({ uid, stored }: RotationInput, { verifiers }: CredentialState, secret: string): AcceptedVerifier {
  return nextVerifier(uid, secret, [...(stored?.verifiers ?? []), ...verifiers]);
}
