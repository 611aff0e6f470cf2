import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { narrowAccess } from '../../../src/oauth/access/access.ts';
import type { AccessRequest } from '../../../src/oauth/ports/grant-store.ts';

const grant = { scope: ['a', 'b', 'c'], audiences: ['https://one.example', 'https://two.example'] };
const all: AccessRequest = {
  scope: undefined,
  resource: undefined,
  allowedScopes: ['a', 'b', 'c', 'd'],
  allowedAudiences: ['https://one.example', 'https://two.example', 'https://three.example'],
  defaultAudience: 'https://two.example',
};

describe('access under a grant', () => {
  it('is all of its scope, for the default audience', () => {
    expect(narrowAccess(grant, all)).toEqual({
      outcome: 'granted',
      scope: ['a', 'b', 'c'],
      audience: 'https://two.example',
    });
  });

  it('falls back to the first audience it covers when the default is not among them', () => {
    const answer = narrowAccess(grant, { ...all, defaultAudience: 'https://three.example' });
    expect(answer).toMatchObject({ audience: 'https://one.example' });
  });

  it('may be narrower but never wider than what was granted', () => {
    expect(narrowAccess(grant, { ...all, scope: ['b'] })).toMatchObject({ scope: ['b'] });
    expect(narrowAccess(grant, { ...all, scope: ['b', 'd'] })).toEqual({ outcome: 'scope_exceeded' });
    expect(narrowAccess(grant, { ...all, resource: 'https://three.example' })).toEqual({ outcome: 'target_exceeded' });
  });

  it('loses what the client is no longer registered for', () => {
    expect(narrowAccess(grant, { ...all, allowedScopes: ['a'] })).toMatchObject({ scope: ['a'] });
    expect(narrowAccess(grant, { ...all, allowedScopes: [] })).toEqual({ outcome: 'scope_exceeded' });
    expect(narrowAccess(grant, { ...all, allowedAudiences: [] })).toEqual({ outcome: 'target_exceeded' });
  });

  it('is within the grant and within the registration, whatever is asked', () => {
    const scopes = fc.subarray(['a', 'b', 'c', 'd', 'e']);
    const audiences = fc.subarray(['x', 'y', 'z']);
    fc.assert(
      fc.property(
        fc.record({ scope: scopes, audiences }),
        fc.record({
          scope: fc.option(scopes, { nil: undefined }),
          resource: fc.option(fc.constantFrom('x', 'y', 'z'), { nil: undefined }),
          allowedScopes: scopes,
          allowedAudiences: audiences,
          defaultAudience: fc.option(fc.constantFrom('x', 'y', 'z'), { nil: undefined }),
        }),
        (granted, request) => {
          const answer = narrowAccess(granted, request);
          if (answer.outcome !== 'granted') return;
          for (const token of answer.scope) {
            expect(granted.scope).toContain(token);
            expect(request.allowedScopes).toContain(token);
          }
          expect(granted.audiences).toContain(answer.audience);
          expect(request.allowedAudiences).toContain(answer.audience);
        },
      ),
    );
  });
});
