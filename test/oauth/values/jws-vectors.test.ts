// Project Wycheproof's vectors for JWS, by the parser, the validation of JWKs and the verification together.

import { readFileSync } from 'node:fs';
import type { JWK } from 'jose';
import { describe, expect, it } from 'vitest';
import { readJwk } from '../../../src/oauth/values/jwk.ts';
import { ALGORITHMS, grantryAccepts, joseAccepts } from './signed-tokens.ts';

interface Vectors {
  readonly testGroups: readonly {
    readonly comment: string;
    readonly public: JWK;
    readonly tests: readonly { readonly tcId: number; readonly jws: string; readonly result: 'valid' | 'invalid' }[];
  }[];
}

const file = new URL('fixtures/json_web_signature_test.json', import.meta.url);
const { testGroups }: Vectors = JSON.parse(readFileSync(file, 'utf8'));
const groups = testGroups.map((group) => ({ ...group, name: `${group.comment} ${group.public.alg ?? ''}` }));

/** Figure 20 of RFC 7520: its header says PS384, and the vector's key PS256. */
const MISLABELLED = [346, 350];

describe('the vectors of Wycheproof', () => {
  it.each(groups)(
    'given $name → exactly the valid ones of our algorithms are accepted, and jose accepts them',
    async ({ public: jwk, tests }) => {
      const key = readJwk(jwk);
      const isOurs = ALGORITHMS.some((algorithm) => algorithm === jwk.alg);
      const valid = isOurs ? tests.filter(({ tcId, result }) => result === 'valid' && !MISLABELLED.includes(tcId)) : [];
      const accepted = typeof key === 'string' ? [] : tests.filter(({ jws }) => grantryAccepts(jws, key));
      expect(accepted.map(({ tcId }) => tcId)).toEqual(valid.map(({ tcId }) => tcId));
      for (const { jws, tcId } of accepted) expect(await joseAccepts(jws, jwk), `${tcId}`).toBe(true);
    },
  );

  it('given a key for another use → refused for that', () => {
    const faults = groups.filter(({ comment }) => /encryption/.test(comment)).map((group) => readJwk(group.public));
    expect(faults).toEqual(['wrong_use', 'wrong_use', 'wrong_use', 'wrong_use']);
  });
});
