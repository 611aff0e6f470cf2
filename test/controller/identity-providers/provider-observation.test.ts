import { describe, expect, it } from 'vitest';
import type { SourceObject } from '../../../src/admission/kinds/manifest.ts';
import { observationOf } from '../../../src/controller/identity-providers/provider-observation.ts';
import type { ReplicaProviders } from '../../../src/controller/replicas/reported-providers.ts';

const CORP: SourceObject = {
  namespace: 'grantry-system',
  name: 'corp',
  uid: 'uid-corp',
  createdAt: 0,
  generation: 2,
  manifest: {},
};

/** @param reason undefined: it does not answer */
function replica(name: string, reason?: string, generation = 2): ReplicaProviders {
  const reported = reason === undefined ? undefined : { generation, reachable: reason === 'Reachable', reason };
  return { name, providers: reported && new Map([['uid-corp', reported]]) };
}

function condition(type: string, status: string, reason: string, observedGeneration = 2) {
  return { type, status, reason, message: 'As it was.', observedGeneration };
}

function observed(reports: readonly ReplicaProviders[] | 'NotObserved', lastStatus?: unknown): readonly string[] {
  const { programmed, reachable } = observationOf(CORP, reports, lastStatus);
  return [programmed, reachable].map(({ status, reason }) => `${status} ${reason}`);
}

describe('what the replicas report of a provider', () => {
  it.each<[string, readonly ReplicaProviders[] | 'NotObserved', readonly string[]]>([
    ['no addresses of replicas', 'NotObserved', ['True NotObserved', 'Unknown NotObserved']],
    ['no replica', [], ['Unknown NoReplicas', 'Unknown NotObserved']],
    ['one that has not tried', [replica('a', 'NotObserved')], ['True Programmed', 'Unknown NotObserved']],
    ['all reach it', [replica('a', 'Reachable'), replica('b', 'Reachable')], ['True Programmed', 'True Reachable']],
    [
      'one reaches it, one has not tried',
      [replica('a', 'Reachable'), replica('b', 'NotObserved')],
      ['True Programmed', 'Unknown NotObserved'],
    ],
    [
      'one fails beside others',
      [replica('a', 'Reachable'), replica('b', 'DiscoveryFailed')],
      ['True Programmed', 'False DiscoveryFailed'],
    ],
    [
      'two faults: that of another issuer first',
      [replica('a', 'DiscoveryFailed'), replica('b', 'IssuerMismatch')],
      ['True Programmed', 'False IssuerMismatch'],
    ],
    ['a word of a newer version', [replica('a', 'Throttled')], ['True Programmed', 'Unknown NotObserved']],
    ['a former generation', [replica('a', 'Reachable', 1)], ['False Pending', 'Unknown NotObserved']],
    ['one that knows none', [{ name: 'a', providers: new Map() }], ['False Pending', 'Unknown NotObserved']],
    ['one that does not answer', [replica('a')], ['False Pending', 'Unknown NotObserved']],
    ['one behind', [replica('a', 'Reachable'), replica('b')], ['False Pending', 'True Reachable']],
  ])('given %s → its conditions', (_, reports, expected) => {
    expect(observed(reports)).toEqual(expected);
  });

  it('given a replica that does not answer → the last status of this generation stays, and of no other', () => {
    const last = (generation: number) => ({
      conditions: [
        condition('Programmed', 'True', 'Programmed', generation),
        condition('Reachable', 'False', 'DiscoveryFailed', generation),
      ],
    });
    expect(observed([replica('a')], last(2))).toEqual(['True Programmed', 'False DiscoveryFailed']);
    expect(observed([replica('a')], last(1))).toEqual(['False Pending', 'Unknown NotObserved']);
  });

  it.each<[string, readonly ReplicaProviders[]]>([
    ['one that reports an older generation', [replica('a', 'Reachable', 1)]],
    ['one that reports an older generation beside a silent one', [replica('a', 'Reachable', 1), replica('b')]],
    ['one that knows none beside a silent one', [{ name: 'a', providers: new Map() }, replica('b')]],
    [
      'one that reports an older generation beside one that has this one',
      [replica('a', 'Reachable', 1), replica('b', 'Reachable')],
    ],
  ])('given a provider that was Programmed and %s → Pending', (_, reports) => {
    expect(observed(reports, { conditions: [condition('Programmed', 'True', 'Programmed')] })[0]).toBe('False Pending');
  });

  it('given many replicas that are behind → three names and a number', () => {
    const { programmed } = observationOf(
      CORP,
      ['a', 'b', 'c', 'd', 'e'].map((name) => replica(name)),
      undefined,
    );
    expect(programmed.message).toContain('a, b, c and 2 more');
  });
});
