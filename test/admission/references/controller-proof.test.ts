// The proof of a controller by itself; over HTTP it is in test/http/admin/controller-endpoints.test.ts.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { controllerProof, proofFault } from '../../../src/admission/references/controller-proof.ts';

const KEY = 'a key of thirty-two characters, or more';
const NOW = Date.UTC(2026, 0, 1, 12);
const QUESTION = { path: '/registry/report', body: '{"acknowledged":["a-1"]}' };
const PROOF = controllerProof(QUESTION, KEY, NOW) ?? '';

describe('the proof of a controller', () => {
  it('proves any question, whatever stands around the key in its Secret', () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.uint8Array(),
        fc.integer({ min: 1_000_000_000_000, max: 9_000_000_000_000 }),
        (path, body, now) => {
          const proof = controllerProof({ path, body }, `${KEY}\n`, now);
          expect(proofFault({ path, body: Buffer.from(body) }, proof, KEY, now)).toBeUndefined();
        },
      ),
    );
  });

  it('is none after any change of a character', () => {
    for (const index of Array(PROOF.length).keys()) {
      const other = PROOF[index] === 'A' ? 'B' : 'A';
      const changed = `${PROOF.slice(0, index)}${other}${PROOF.slice(index + 1)}`;
      const isSpare = index === PROOF.length - 1 && sameBytes(PROOF, changed);
      expect(proofFault(QUESTION, changed, KEY, NOW), changed)[isSpare ? 'toBeUndefined' : 'toBeDefined']();
    }
  });

  it.each([
    '',
    'Bearer x',
    `${PROOF} `,
    ` ${PROOF}`,
    `${PROOF}, ${PROOF}`,
    PROOF.toLowerCase(),
    PROOF.replace(' ', '  '),
  ])('is not %j', (authorization) => {
    expect(proofFault(QUESTION, authorization, KEY, NOW)).toBe('proof_missing');
  });

  it('counts from 30 s before its time until 30 s after it', () => {
    const faultAt = (seconds: number) => proofFault(QUESTION, PROOF, KEY, NOW + seconds * 1000);
    expect([-31, -30, 0, 30, 31].map(faultAt)).toEqual([
      'proof_expired',
      undefined,
      undefined,
      undefined,
      'proof_expired',
    ]);
  });

  it('does not reveal its age to a caller without the key', () => {
    expect(proofFault(QUESTION, PROOF, KEY.toUpperCase(), NOW + 3_600_000)).toBe('proof_wrong');
  });
});

/** The last character of base64url has spare bits. */
function sameBytes(one: string, other: string): boolean {
  const bytes = (proof: string) => Buffer.from(proof.split('.')[1] ?? '', 'base64url');
  return bytes(one).equals(bytes(other));
}
