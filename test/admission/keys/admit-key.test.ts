import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { admitKey } from '../../../src/admission/keys/admit-key.ts';
import { admitKeys } from '../../../src/admission/keys/admit-keys.ts';
import type { ReferencedSecret } from '../../../src/admission/references/references.ts';
import { generateSigningKeyPem, importSigningKey } from '../../../src/oauth/registry/keys.ts';
import { sourceObject, summaryOf } from '../world.ts';

function keyDocument(spec: object, namespace = 'grantry-system') {
  return { apiVersion: 'grantry.dev/v1alpha1', kind: 'SigningKey', metadata: { name: 'main', namespace }, spec };
}

function admitKeyOf(document: unknown, secret?: ReferencedSecret | 'assumed', publisher?: string) {
  return admitKey(sourceObject(document), {
    unknownFields: 'refuse',
    releaseNamespace: 'grantry-system',
    references: {
      secret: (namespace, name) => (namespace === 'grantry-system' && name === 'mine' ? secret : undefined),
    },
    revokedKeyIds: new Set(),
    olderPublisher: () => publisher,
  });
}

describe('a SigningKey', () => {
  it('counts in the release namespace, its key still to be made', async () => {
    const { accepted, imported, conditions, manifest } = await admitKeyOf(keyDocument({}));
    expect(accepted).toBe(true);
    expect(imported).toBeUndefined();
    expect(manifest?.spec).toMatchObject({
      algorithm: 'ES256',
      rsaModulusBits: 3072,
      rotation: { interval: 7_776_000 },
    });
    expect(summaryOf(conditions)).toEqual(['KeyMaterialReady=Unknown/Pending', 'Ready=Unknown/Pending']);
  });

  it('counts nowhere else', async () => {
    const { accepted, conditions } = await admitKeyOf(keyDocument({}, 'team'));
    expect(accepted).toBe(false);
    expect(conditions[0]?.reason).toBe('NamespaceNotHonoured');
  });

  it('that is suspended does not count, and that is no fault', async () => {
    const { accepted, faults, conditions } = await admitKeyOf(keyDocument({ suspended: true }));
    expect(accepted).toBe(false);
    expect(faults).toEqual([]);
    expect(conditions[0]?.reason).toBe('Suspended');
  });

  it('may not put labels on Secrets that make other controllers act', async () => {
    const secretTemplate = { labels: { 'argocd.argoproj.io/secret-type': 'cluster' } };
    expect((await admitKeyOf(keyDocument({ secretTemplate }))).conditions[0]?.reason).toBe('InvalidSecretTemplate');
  });

  it('may rotate only after its next key has been published', async () => {
    const reasonOf = async (interval: string) =>
      (await admitKeyOf(keyDocument({ rotation: { prePublish: '24h', interval } }))).conditions[0]?.reason;
    expect(await reasonOf('24h')).toBe('InvalidRotation');
    expect(await reasonOf('86401s')).toBe('Pending');
  });

  it('of anything at all is refused and never thrown about', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue({ maxDepth: 4 }), async (value) => {
        expect((await admitKeyOf({ kind: 'SigningKey', metadata: value, spec: value })).accepted).toBe(false);
      }),
    );
  });
});

describe('an imported key', () => {
  const spec = { algorithm: 'ES256', importSecretRef: { name: 'mine', key: 'pem' } };

  it('signs under its thumbprint', async () => {
    const pem = await generateSigningKeyPem('ES256');
    const { kid } = await importSigningKey(pem, 'ES256', 'Active');
    const { imported, conditions } = await admitKeyOf(keyDocument(spec), { stringData: { pem } });
    expect(imported).toMatchObject({ kid, state: 'Active', algorithm: 'ES256' });
    expect(summaryOf(conditions)).toEqual(['KeyMaterialReady=True/KeyImported', 'Ready=True/Ready']);
  });

  it('that is revoked signs nothing', async () => {
    const pem = await generateSigningKeyPem('ES256');
    const { kid } = await importSigningKey(pem, 'ES256', 'Active');
    const { accepted, imported, conditions } = await admitKeyOf(keyDocument({ ...spec, revokedKeyIds: [kid] }), {
      stringData: { pem },
    });
    expect(accepted).toBe(false);
    expect(imported).toBeUndefined();
    expect(conditions[0]?.reason).toBe('KeyRevoked');
  });

  const certificate = '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----';
  it.each<[string, () => Promise<ReferencedSecret | undefined>, string]>([
    [
      'another algorithm',
      async () => ({ stringData: { pem: await generateSigningKeyPem('EdDSA') } }),
      'InvalidKeyMaterial',
    ],
    ['a certificate', async () => ({ stringData: { pem: certificate } }), 'InvalidKeyMaterial'],
    ['no such key', async () => ({ stringData: { other: 'x' } }), 'SecretKeyMissing'],
    ['no Secret', async () => undefined, 'SecretNotFound'],
  ])('with %s is refused', async (_, secret, reason) => {
    const { accepted, conditions } = await admitKeyOf(keyDocument(spec), await secret());
    expect(accepted).toBe(false);
    expect(conditions[0]).toMatchObject({ status: 'False', reason });
  });

  it('that an older SigningKey publishes → refused, and the condition names that one and the remedy', async () => {
    const secret = { stringData: { pem: await generateSigningKeyPem('ES256') } };
    const { accepted, imported, conditions } = await admitKeyOf(keyDocument(spec), secret, 'first');
    expect([accepted, imported]).toEqual([false, undefined]);
    expect(summaryOf(conditions)).toEqual([
      'KeyMaterialReady=False/DuplicateKeyMaterial',
      'Ready=False/DuplicateKeyMaterial',
    ]);
    expect(conditions[0]?.message).toMatch(/^spec\.importSecretRef\.name: .*"first".*import another/);
  });

  it('with another thumbprint than the one promised is refused', async () => {
    const importSecretRef = { ...spec.importSecretRef, keyId: 'A'.repeat(43) };
    const secret = { stringData: { pem: await generateSigningKeyPem('ES256') } };
    const { faults } = await admitKeyOf(keyDocument({ ...spec, importSecretRef }), secret);
    expect(faults.map(({ path }) => path.join('.'))).toEqual(['spec.importSecretRef.keyId']);
  });

  it('that is only assumed is no fault', async () => {
    expect((await admitKeyOf(keyDocument(spec), 'assumed')).faults).toEqual([]);
  });
});

describe('a key that one SigningKey of a folder revokes', () => {
  it.each([
    ['of the same namespace', 'auth', 'KeyRevoked'],
    ['of another install', 'other', 'Ready'],
  ])('another one %s (namespace %s) imports it → %s', async (_, namespace, expected) => {
    const pem = await generateSigningKeyPem('ES256');
    const { kid } = await importSigningKey(pem, 'ES256', 'Active');
    const document = (name: string, of: string, spec: object) => ({
      ...keyDocument(spec, of),
      metadata: { name, namespace: of },
    });
    const objects = [
      sourceObject(document('importing', namespace, { importSecretRef: { name: 'mine', key: 'pem' } }), 1),
      sourceObject(document('revoking', 'auth', { revokedKeyIds: [kid] }), 2),
    ];
    const references = { secret: () => ({ stringData: { pem } }) };
    const verdicts = await admitKeys(objects, { unknownFields: 'refuse', releaseNamespace: undefined, references });
    expect(verdicts.map(({ conditions }) => conditions[1]?.reason)).toEqual([expected, 'Pending']);
  });
});

describe('SigningKeys of one folder that import one key', () => {
  it.each([
    ['of two algorithms', 'PS256', 'auth', 'DuplicateKeyMaterial'],
    ['of one algorithm', 'RS256', 'auth', 'DuplicateKeyMaterial'],
    ['of two installs', 'PS256', 'other', 'Ready'],
  ])('%s → the oldest has it, in whatever order they are given', async (_, algorithm, namespace, expected) => {
    const pem = await generateSigningKeyPem('RS256', 2048);
    const document = (name: string, spec: object, of: string) => ({
      ...keyDocument({ importSecretRef: { name: 'mine', key: 'pem' }, ...spec }, of),
      metadata: { name, namespace: of },
    });
    const older = sourceObject(document('z-older', { algorithm: 'RS256' }, 'auth'), 1);
    const younger = sourceObject(document('a-younger', { algorithm }, namespace), 2);
    const context = {
      unknownFields: 'refuse' as const,
      releaseNamespace: undefined,
      references: { secret: () => ({ stringData: { pem } }) },
    };
    for (const objects of [
      [older, younger],
      [younger, older],
    ]) {
      const verdicts = await admitKeys(objects, context);
      expect(verdicts.map(({ object }) => object)).toEqual(objects);
      const reasons = Object.fromEntries(
        verdicts.map(({ object, conditions }) => [object.name, conditions[1]?.reason]),
      );
      expect(reasons).toEqual({ 'z-older': 'Ready', 'a-younger': expected });
    }
  });
});

describe('more SigningKeys of one folder than keys may be published', () => {
  it('→ the oldest 16 are accepted; suspended and refused ones take no room, and those of another install have their own', async () => {
    const ring = (name: string, order: number, spec: object = {}, namespace = 'auth') =>
      sourceObject({ ...keyDocument(spec, namespace), metadata: { name, namespace } }, order);
    const objects = [
      ring('younger', 20),
      ring('younger-and-refused', 21, { rotation: { retain: '1h' } }),
      ring('elsewhere', 22, {}, 'other'),
      ring('suspended', 1, { suspended: true }),
      ring('refused', 2, { rotation: { retain: '1h' } }),
      ...Array.from({ length: 16 }, (_, index) => ring(`old-${index}`, 3 + index)),
    ];
    const context = {
      unknownFields: 'refuse',
      releaseNamespace: undefined,
      references: { secret: () => undefined },
    } as const;
    const verdicts = await admitKeys(objects, context);
    expect(verdicts.map(({ conditions }) => conditions[0]?.reason)).toEqual([
      ...['TooManyKeys', 'InvalidRotation', 'Pending', 'Suspended', 'InvalidRotation'],
      ...Array<string>(16).fill('Pending'),
    ]);
    expect(verdicts.filter(({ accepted }) => accepted)).toHaveLength(17);
  });
});
