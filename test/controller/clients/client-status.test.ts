import { describe, expect, it } from 'vitest';
import type { ClientVerdict } from '../../../src/admission/clients/admit-client.ts';
import type { Condition } from '../../../src/admission/kinds/conditions.ts';
import type { CredentialState } from '../../../src/controller/client-secrets/credential-state.ts';
import { type ClientReport, clientStatus } from '../../../src/controller/clients/client-status.ts';
import { conditionIn, isSameStatus } from '../../../src/controller/reconciling/status-conditions.ts';
import { secretVerifier } from '../../../src/oauth/registry/client-secret.ts';
import { admitOne, clientDocument } from '../../admission/world.ts';

const NOW = Date.parse('2026-03-01T12:00:00.250Z');
const HOUR = 3_600_000;

function verdictOf(spec: Readonly<Record<string, unknown>>): ClientVerdict {
  const document = clientDocument(
    { grantTypes: ['client_credentials'], scopes: ['shop/read'], redirectUris: ['https://shop.example/back'], ...spec },
    { name: 'web', namespace: 'shop' },
  );
  return admitOne([document]);
}

const CREDENTIALS: CredentialState = {
  revision: 5,
  verifiers: [{ verifier: secretVerifier('uid', 'two'), revision: 2 }],
  rotatedAt: NOW - HOUR,
  begunAt: undefined,
  handled: { rotateAt: 'monday', rotateNow: undefined },
};

function report(fields: Partial<ClientReport> = {}): ClientReport {
  return {
    verdict: verdictOf({}),
    credentials: CREDENTIALS,
    notices: [],
    grants: undefined,
    lastUsed: undefined,
    ...fields,
  };
}

const typesOf = (status: unknown) => (status as { conditions: Condition[] }).conditions.map(({ type }) => type);

describe('the status of a client', () => {
  it('shows the client, its secret and when that changes', () => {
    const verdict = verdictOf({ auth: { clientSecret: { rotation: { interval: '48h' } } } });
    const previous = { verifier: secretVerifier('uid', 'one'), revision: 1, expiresAt: NOW + HOUR };
    const credentials = { ...CREDENTIALS, verifiers: [...CREDENTIALS.verifiers, previous] };
    const status = clientStatus(report({ verdict, credentials, lastUsed: '2026-02-28' }), undefined, NOW);
    expect(status).toMatchObject({
      observedGeneration: 3,
      clientId: 'shop.web',
      policy: '(baseline)',
      grants: 'client_credentials',
      lastHandledRotateAt: 'monday',
      lastUsedTime: '2026-02-28T00:00:00Z',
      binding: { name: 'web-oauth' },
      secret: {
        name: 'web-oauth',
        revision: 2,
        fingerprint: expect.stringMatching(/^[0-9a-f]{12}$/),
        lastRotationTime: '2026-03-01T11:00:00Z',
        nextRotationTime: '2026-03-03T11:00:00Z',
        previousExpiresAt: '2026-03-01T13:00:00Z',
      },
    });
    expect(typesOf(status)).toEqual(['Accepted', 'ResolvedRefs', 'CredentialsReady', 'Programmed', 'Ready']);
  });

  it('shows the secret that its owner has while another one is on its way', () => {
    const onItsWay = { verifier: secretVerifier('uid', 'three'), revision: 3 };
    const credentials = { ...CREDENTIALS, begunAt: NOW, verifiers: [onItsWay, ...CREDENTIALS.verifiers] };
    expect(clientStatus(report({ credentials }), undefined, NOW)).toMatchObject({ secret: { revision: 2 } });
  });

  it('gives no fingerprint of a secret that its owner chose', () => {
    const verdict = verdictOf({ auth: { clientSecret: { source: 'Existing', secretName: 'mine' } } });
    const { secret } = clientStatus(report({ verdict }), undefined, NOW) as { secret: object };
    expect(secret).toMatchObject({ name: 'mine' });
    expect(secret).not.toHaveProperty('fingerprint');
  });

  it('shows no secret where there is none', () => {
    const verdict = verdictOf({ auth: { method: 'none' }, grantTypes: ['authorization_code'] });
    const status = clientStatus(report({ verdict, credentials: undefined }), undefined, NOW);
    expect(status).not.toHaveProperty('secret');
    expect(status).not.toHaveProperty('binding');
  });

  it.each([
    ['a refused client', verdictOf({ grantTypes: ['password'] }), 'Stalled', 'UnsupportedGrantType'],
    ['a suspended client', verdictOf({ suspended: true }), 'Stalled', 'Suspended'],
    [
      'a template that cannot be filled',
      verdictOf({ auth: { clientSecret: { extraData: { key: '$' + '{NOPE}' } } } }),
      'Stalled',
      'InvalidSecretTemplate',
    ],
    [
      'a Secret that is waited for',
      verdictOf({ auth: { clientSecret: { source: 'Existing' } } }),
      'Reconciling',
      'SecretNotFound',
    ],
  ])('of %s says whether to wait or to act', (_, verdict, type, reason) => {
    const status = clientStatus(report({ verdict, credentials: undefined }), undefined, NOW);
    expect(conditionIn(status, type)).toMatchObject({ status: 'True', reason });
    expect(typesOf(status).filter((each) => ['Stalled', 'Reconciling'].includes(each))).toEqual([type]);
  });

  it('warns of a revokeTokensBefore in the future, until it is over, and leaves Ready as it is', () => {
    const verdict = verdictOf({ revokeTokensBefore: '2026-03-01T12:00:01Z' });
    const before = clientStatus(report({ verdict }), undefined, NOW);
    expect(conditionIn(before, 'RevokedUntil')).toMatchObject({ status: 'True', reason: 'RevokeTokensBeforeInFuture' });
    expect(conditionIn(before, 'Ready')).toMatchObject(
      conditionIn(clientStatus(report(), undefined, NOW), 'Ready') ?? {},
    );
    expect(typesOf(clientStatus(report({ verdict }), before, NOW + 1000))).not.toContain('RevokedUntil');
  });

  it('keeps the time of a condition that says the same, and only of that', () => {
    const first = clientStatus(report({ verdict: verdictOf({ suspended: true }) }), undefined, NOW);
    const second = clientStatus(report(), first, NOW + HOUR);
    expect(conditionIn(second, 'Accepted')).toMatchObject({ lastTransitionTime: '2026-03-01T13:00:00Z' });
    const third = clientStatus(report(), second, NOW + 2 * HOUR);
    expect(conditionIn(third, 'Accepted')).toMatchObject({ lastTransitionTime: '2026-03-01T13:00:00Z' });
  });

  it('takes no time from a condition that only the schema put there', () => {
    const pending = { type: 'Programmed', status: 'Unknown', reason: 'Pending', message: 'Waiting.' };
    const before = { conditions: [{ ...pending, lastTransitionTime: '1970-01-01T00:00:00Z' }] };
    const status = clientStatus(report({ verdict: verdictOf({ suspended: true }) }), before, NOW);
    expect(conditionIn(status, 'Programmed')).toMatchObject({
      status: 'Unknown',
      lastTransitionTime: '2026-03-01T12:00:00Z',
    });
  });

  it('is the same in any order, and another one with any other word', () => {
    const status = clientStatus(report(), undefined, NOW);
    const { conditions, ...others } = status;
    const turned = { conditions: [...conditions].reverse(), ...Object.fromEntries(Object.entries(others).reverse()) };
    expect(isSameStatus(status, turned)).toBe(true);
    expect(isSameStatus(status, clientStatus(report({ lastUsed: '2026-03-01' }), status, NOW))).toBe(false);
    expect(isSameStatus(status, undefined)).toBe(false);
  });
});
