import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cappedToken, narrowAccess } from '../../../src/oauth/access/access.ts';
import type { AccessRequest } from '../../../src/oauth/ports/grant-store.ts';

const grant = { scope: ['a', 'b', 'c'], audiences: ['https://one.example', 'https://two.example'] };
const all: AccessRequest = {
  scope: undefined,
  resource: undefined,
  allowedScopes: ['a', 'b', 'c', 'd'],
  allowedAudiences: ['https://one.example', 'https://two.example', 'https://three.example'],
  defaultAudience: 'https://two.example',
  at: undefined,
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
          at: fc.option(
            fc.dictionary(
              fc.constantFrom('x', 'y', 'z'),
              fc.record({ scopes, maxLifetimeSeconds: fc.constant(undefined) }),
            ),
            { nil: undefined },
          ),
        }),
        (granted, request) => {
          const answer = narrowAccess(granted, request);
          if (answer.outcome !== 'granted') return;
          expect(answer.scope.length).toBeGreaterThan(0);
          for (const token of answer.scope) {
            expect(granted.scope).toContain(token);
            expect(request.at?.[answer.audience]?.scopes ?? request.allowedScopes).toContain(token);
            expect(request.scope ?? granted.scope).toContain(token);
          }
          expect(granted.audiences).toContain(answer.audience);
          expect(request.allowedAudiences).toContain(answer.audience);
        },
      ),
      { numRuns: 1000 },
    );
  });
});

describe('access under a grant where audiences differ', () => {
  const [ONE, TWO] = ['https://one.example', 'https://two.example'] as const;
  const at = {
    [ONE]: { scopes: ['a', 'x'], maxLifetimeSeconds: 60 },
    [TWO]: { scopes: ['b'], maxLifetimeSeconds: undefined },
  };
  const covered = { scope: ['c', 'b', 'x', 'a'], audiences: [ONE, TWO] };
  const request = { ...all, at };

  it('leaves a scope of another audience out, in the order of the grant', () => {
    expect(narrowAccess(covered, { ...request, resource: ONE })).toMatchObject({ scope: ['x', 'a'], audience: ONE });
    expect(narrowAccess(covered, request)).toMatchObject({ scope: ['b'], audience: TWO });
  });

  it('keeps of the requested scope what the audience has, in the order of the request', () => {
    const scope = ['a', 'b', 'x'];
    expect(narrowAccess(covered, { ...request, scope, resource: ONE })).toMatchObject({ scope: ['a', 'x'] });
    expect(narrowAccess(covered, { ...request, scope, resource: TWO })).toMatchObject({ scope: ['b'] });
  });

  it('is refused where the audience has nothing of the requested scope', () => {
    expect(narrowAccess(covered, { ...request, scope: ['b'], resource: ONE })).toEqual({ outcome: 'scope_exceeded' });
  });

  it('is refused for a scope that no audience has, whatever the client may have elsewhere', () => {
    expect(narrowAccess(covered, { ...request, scope: ['a', 'c'] })).toEqual({ outcome: 'scope_exceeded' });
  });

  it('keeps all that the client may have at an audience without rules', () => {
    const alone = { ...request, at: { [ONE]: at[ONE] }, resource: TWO };
    expect(narrowAccess(covered, alone)).toMatchObject({ scope: ['c', 'b', 'a'], audience: TWO });
  });

  it('loses a dropped audience and its scopes, and nothing else', () => {
    const dropped = { ...request, allowedAudiences: [TWO] };
    expect(narrowAccess(covered, dropped)).toMatchObject({ scope: ['b'], audience: TWO });
    expect(narrowAccess(covered, { ...dropped, resource: ONE })).toEqual({ outcome: 'target_exceeded' });
    expect(narrowAccess(covered, { ...dropped, scope: ['x'] })).toEqual({ outcome: 'scope_exceeded' });
  });

  it('without any audience is refused for its target, whatever the scope', () => {
    const none = { ...request, allowedAudiences: [] };
    expect(narrowAccess(covered, none)).toEqual({ outcome: 'target_exceeded' });
    expect(narrowAccess(covered, { ...none, scope: ['x'] })).toEqual({ outcome: 'target_exceeded' });
  });
});

describe('a token for an audience with a cap', () => {
  const token = { tokenId: '000.id', issuedAtSeconds: 1000, expiresAtSeconds: 4600, mac: 'mac' };
  const capAt = (maxLifetimeSeconds: number | undefined) => ({ at: { x: { scopes: [], maxLifetimeSeconds } } });

  it('ends earlier, with the MAC of that end', () => {
    const capped = cappedToken({ ...token, macAt: { x: 'mac of x' } }, 'x', capAt(60));
    expect(capped).toStrictEqual({ ...token, expiresAtSeconds: 1060, mac: 'mac of x' });
  });

  it.each([3600, 7200, undefined])('lives as long as the client says where the cap is %s', (seconds) => {
    expect(cappedToken(token, 'x', capAt(seconds))).toStrictEqual(token);
  });

  it('does not concern the other audiences', () => {
    expect(cappedToken({ ...token, macAt: { x: 'mac of x' } }, 'y', capAt(60))).toStrictEqual(token);
    expect(cappedToken(token, 'y', { at: undefined })).toStrictEqual(token);
  });
});
