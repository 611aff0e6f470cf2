// Computes the status of a SigningKey, which is applied as a whole. Pure. Status is a report: no step of a ring depends
// on it.

import { type KeyVerdict, TOO_MANY_KEYS } from '../../admission/keys/admit-key.ts';
import { keySecretName, type StoredKey } from '../../admission/keys/key-secret.ts';
import { type Condition, pending, readyCondition } from '../../admission/kinds/conditions.ts';
import { printed } from '../../admission/kinds/quoted.ts';
import type { SigningKeyStatus } from '../../admission/kinds/signing-key.ts';
import { seconds, withoutUndefined, withTime } from '../reconciling/status-conditions.ts';
import { namesOf } from '../replicas/programmed.ts';
import { activationTime, activeKey, type DesiredRing, handledRequest, nextActivation, nextKey } from './key-plan.ts';

/** The inputs of the status. */
export interface KeyReport {
  readonly verdict: KeyVerdict;
  /** Undefined when the manifest cannot be read. */
  readonly desired: DesiredRing | undefined;
  readonly keys: readonly StoredKey[];
  /** Whether a key is due that may not be published yet. */
  readonly lacksRoom: boolean;
  /** The replicas that do not have the next key although it is due; empty when there is none to wait for. */
  readonly behind: readonly string[];
}

/** Reasons that may pass with time or by a change of another object, without the owner. */
const TRANSIENT = ['Pending', 'SecretNotFound', 'SecretKeyMissing', 'TooManyKeys'];
const KEYS_SHOWN = 100;

/**
 * The whole status.
 * @param before the present status: a condition with the same status keeps its time
 */
export function keyStatus(report: KeyReport, before: unknown, now: number): SigningKeyStatus {
  const { verdict, desired, keys } = report;
  const active = activeKey(keys);
  const handled = handledRequest(keys);
  const material = materialCondition(report, active);
  const ready = readyCondition([material], verdict.object.generation);
  const conditions = [material, rotatingCondition(report, now), ready, ...progressConditions(ready)];
  return withoutUndefined({
    observedGeneration: verdict.object.generation,
    activeKeyId: active?.keyId,
    lastRotationTime: seconds(active?.activatedAt),
    nextRotationTime: desired?.mayBegin ? seconds(nextActivation(desired, keys)) : undefined,
    lastHandledRotateAt: handled === undefined ? undefined : printed(handled),
    keys: keys
      .toSorted((a, b) => a.publishedAt - b.publishedAt || (a.keyId < b.keyId ? -1 : 1))
      .slice(-KEYS_SHOWN)
      .map(keyFields),
    conditions: conditions.map((condition) => withTime(condition, before, now)),
  });
}

function keyFields(key: StoredKey): SigningKeyStatus['keys'][number] {
  const { keyId, algorithm, state, publishedAt, activatedAt, removeAfter } = key;
  return withoutUndefined({
    keyId,
    algorithm,
    state,
    secretName: keySecretName(key),
    publishedAt: seconds(publishedAt),
    activatedAt: seconds(activatedAt),
    removeAfter: seconds(removeAfter),
  });
}

function materialCondition({ verdict, desired, lacksRoom }: KeyReport, active: StoredKey | undefined): Condition {
  const { generation: observedGeneration } = verdict.object;
  const type = 'KeyMaterialReady';
  if (!verdict.accepted) {
    const known = verdict.conditions.find((condition) => condition.type === type);
    return known ?? pending(type, 'The key is not there yet.', observedGeneration);
  }
  if (active === undefined) {
    if (lacksRoom) return tooManyKeys(type, observedGeneration);
    return pending(type, 'The key is not there yet.', observedGeneration);
  }
  if (desired?.importedKeyId !== undefined) {
    return {
      type,
      status: 'True',
      reason: 'KeyImported',
      message: 'The imported key is in place.',
      observedGeneration,
    };
  }
  return {
    type,
    status: 'True',
    reason: 'KeyGenerated',
    message: 'The generated key is in place.',
    observedGeneration,
  };
}

function tooManyKeys(type: string, observedGeneration: number): Condition {
  return { type, status: 'False', reason: 'TooManyKeys', message: TOO_MANY_KEYS, observedGeneration };
}

function rotatingCondition({ verdict, desired, keys, lacksRoom, behind }: KeyReport, now: number): Condition {
  const { generation: observedGeneration } = verdict.object;
  const type = 'Rotating';
  if (lacksRoom && activeKey(keys) !== undefined) return tooManyKeys(type, observedGeneration);
  const next = desired?.mayBegin ? nextKey(desired, keys) : undefined;
  if (desired === undefined || next === undefined) {
    return { type, status: 'False', reason: 'Idle', message: 'No other key is about to sign.', observedGeneration };
  }
  const due = activationTime(desired, next);
  if (now >= due && behind.length > 0) {
    const message = `The key ${next.keyId} is not served yet by ${namesOf(behind)}.`;
    return { type, status: 'True', reason: 'WaitingForReplicas', message, observedGeneration };
  }
  const message = `The key ${next.keyId} is published and signs from ${seconds(due)} on.`;
  return { type, status: 'True', reason: 'KeyPublished', message, observedGeneration };
}

/** What kstatus reads: `Stalled` when only the owner can fix it, else `Reconciling` until it is ready. */
function progressConditions(ready: Condition): readonly Condition[] {
  if (ready.status === 'True') return [];
  return [{ ...ready, type: TRANSIENT.includes(ready.reason) ? 'Reconciling' : 'Stalled', status: 'True' }];
}
