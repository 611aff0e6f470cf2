import { expect, it } from 'vitest';
import { describeError } from '../../../src/http/server/errors.ts';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';

const ISSUER = 'https://auth.example';

it('a store that cannot answer now is 503 with the time to try again', () => {
  expect(describeError(new StoreUnavailableError('grantRotate'), ISSUER)).toMatchObject({
    status: 503,
    error: 'temporarily_unavailable',
    reason: 'store_unavailable',
    headers: { 'retry-after': '1' },
  });
});

it('a store that voided what was presented is 503 without one: trying again cannot succeed', () => {
  const error = new StoreUnavailableError('grantRedeem', undefined, { retriable: false });
  const answer = describeError(error, ISSUER);
  expect(answer).toMatchObject({ status: 503, error: 'temporarily_unavailable', reason: 'store_unavailable' });
  expect(answer.headers).toEqual({});
});
