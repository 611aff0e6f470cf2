// The arithmetic of the benchmark: ratios inside each round, medians over them, and the verdict on a row.

import { describe, expect, it } from 'vitest';
import { type Measurement, type Round, rowsOf, TREE_ROWS, workloadsFor } from '../../bench/rows.ts';
import { quantile, summarize } from '../../bench/statistics.ts';

function measurement(cpuMicroseconds: number, p99Milliseconds = 1): Measurement {
  return { cpuMicroseconds, redisMicroseconds: 10, requestsPerSecond: 1, p50Milliseconds: 1, p99Milliseconds };
}

function round(ours: Measurement, peer: Measurement, empty = measurement(30)): Round {
  const workloads = { 'client credentials': ours, 'client credentials of the peer': peer, 'empty POST': empty };
  return { workloads, signatureMicroseconds: 20 };
}

describe('a summary', () => {
  it('has the median and the quartiles, between two values where need be', () => {
    expect(summarize([5, 1, 3])).toEqual({ median: 3, lowerQuartile: 2, upperQuartile: 4 });
    expect(quantile([10, 20], 0.99)).toBeCloseTo(19.9);
    expect(() => summarize([])).toThrow(TypeError);
  });
});

describe('a row', () => {
  it('is the median of the ratios of each round, not the ratio of medians', () => {
    const rounds = [
      round(measurement(100), measurement(200)),
      round(measurement(50), measurement(200)),
      round(measurement(10), measurement(90)),
    ];
    const [row] = rowsOf(rounds, ['credentials against the peer']).filter(({ name }) => !name.startsWith('p99'));
    expect(row).toMatchObject({ median: 4, verdict: 'floor' });
  });

  it('against the limit divides what cannot be avoided by what was used', () => {
    expect(rowsOf([round(measurement(100), measurement(1))], ['limit'])).toMatchObject([
      { median: 0.5, verdict: 'floor' },
    ]);
  });

  it('of latencies is the better the smaller it is', () => {
    const verdict = (ours: number) =>
      rowsOf([round(measurement(1, ours), measurement(1, 100))], ['p99 of client credentials']).map(
        (row) => row.verdict,
      );
    expect([verdict(20), verdict(30), verdict(40)]).toEqual([['goal'], ['floor'], ['below']]);
  });

  it('asks only for the workloads it needs', () => {
    expect(workloadsFor(['introspection'])).toEqual(['introspection', 'empty POST']);
    expect(workloadsFor(['nothing of the kind'])).toEqual([]);
    expect(() => rowsOf([round(measurement(1), measurement(1))], ['introspection'])).toThrow(Error);
  });

  it('of two trees divides the cost of the other one by that of this one', () => {
    const workloads = { redeem: measurement(100), 'redeem of the other tree': measurement(90) };
    const rows = rowsOf([{ workloads, signatureMicroseconds: 20 }], ['redeem'], TREE_ROWS);
    expect(rows.map(({ median }) => median)).toEqual([0.9, 100 / 110]);
    expect(workloadsFor(['redeem'], TREE_ROWS)).toEqual(Object.keys(workloads));
  });

  it('of a person of a provider divides the cost of a local one by it, and has its floor', () => {
    const row = (ofProvider: number) => {
      const workloads = {
        'refresh of a local person': measurement(85),
        'refresh of a person of a provider': measurement(ofProvider),
      };
      return rowsOf([{ workloads, signatureMicroseconds: 20 }], ['people of a provider'])[0];
    };
    expect(row(100)).toMatchObject({ median: 0.85, verdict: 'floor' });
    expect(row(125)).toMatchObject({ median: 0.68, verdict: 'below' });
    expect(row(85)).toMatchObject({ median: 1, verdict: 'goal' });
    expect(workloadsFor(['people of a provider'])).toEqual([
      'refresh of a local person',
      'refresh of a person of a provider',
    ]);
  });

  it('without a target is reported without a verdict', () => {
    const side = (requestsPerSecond: number) => ({ ...measurement(100), requestsPerSecond });
    const workloads = { refresh: side(3000), 'refresh of the peer': side(1000) };
    const [row] = rowsOf([{ workloads, signatureMicroseconds: 20 }], ['refresh against the peer, per second']);
    expect(row).toMatchObject({ median: 3 });
    expect(row).not.toHaveProperty('verdict');
  });

  it('is asked for by any of several texts', () => {
    expect(workloadsFor(['refresh', 'redeem'])).toEqual([
      'refresh',
      'refresh of the peer',
      'redeem',
      'redeem of the peer',
    ]);
    expect(workloadsFor(['']).length).toBeGreaterThan(8);
  });
});

describe('two replicas', () => {
  it('are worth two when a refresh costs no more CPU than with one', () => {
    const workloads = { 'refresh by one replica': measurement(100), 'refresh by two replicas': measurement(125) };
    const rows = rowsOf([{ workloads, signatureMicroseconds: 20 }], ['by CPU']);
    expect(rows).toMatchObject([{ median: 1.6, verdict: 'below' }]);
  });
});
