import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { admitKeys } from '../../src/admission/keys/admit-keys.ts';
import { LocalKeys } from '../../src/local-state/local-keys.ts';
import { StateFiles } from '../../src/local-state/state-files.ts';
import { manifestReferences } from '../../src/manifests/references.ts';
import { generateSigningKeyPem } from '../../src/oauth/registry/keys.ts';
import { folderOfTest, manifestsOf } from '../manifests/a-folder.ts';

const HOUR = 3_600_000;

/** The keys of a folder on disk whose manifests and time change. */
async function keysOfTest() {
  const folder = await folderOfTest({});
  const state = await StateFiles.open(folder);
  let now = Date.parse('2026-03-01T00:00:00Z');
  const clock = { now: () => now };
  let keys = new LocalKeys({ state, clock, releaseNamespace: 'default' });
  return {
    pass: (hours: number) => {
      now += hours * HOUR;
    },
    restart: () => {
      keys = new LocalKeys({ state, clock, releaseNamespace: 'default' });
    },
    files: () => readdir(join(folder, '.grantry/keys')),
    served: async (manifests = '') => {
      const { objects } = await manifestsOf({ 'keys.yaml': manifests });
      const references = manifestReferences({ objects, verifiersOf: () => [], assumeMissing: false });
      const own = objects.filter(({ kind }) => kind === 'SigningKey');
      const verdicts = await admitKeys(own, { unknownFields: 'ignore', releaseNamespace: 'default', references });
      const { ring, rotations, dueAt } = await keys.reconcile(verdicts);
      return {
        signing: ring.signing?.kid ?? '',
        all: ring.jwks.keys.map(({ kid }) => kid ?? ''),
        rotations,
        hours: dueAt === undefined ? undefined : (dueAt - now) / HOUR,
      };
    },
  };
}

function signingKey(spec: string, name = 'main'): string {
  return `apiVersion: grantry.dev/v1alpha1\nkind: SigningKey\nmetadata: {name: ${name}}\nspec: {algorithm: ES256, ${spec}}\n`;
}

it('given more rings than keys may be published → 16 keys, and none goes for another ring', async () => {
  const keys = await keysOfTest();
  const rings = (count: number) =>
    Array.from({ length: count }, (_, index) => signingKey('rotation: {}', `b-${index}`)).join('---\n');
  const first = await keys.served(rings(16));
  expect(first.all).toHaveLength(16);
  const more = await keys.served(`${signingKey('rotation: {}', 'a')}---\n${rings(18)}`);
  expect(more.all.toSorted()).toEqual(first.all.toSorted());
  expect(more.signing).toBe(first.signing);
});

it('given a schedule → the ring rotates by it, verifies until the end of retain, and then removes the key', async () => {
  const keys = await keysOfTest();
  const manifest = signingKey('rotation: {interval: 72h, prePublish: 24h, retain: 48h}');
  const first = await keys.served(manifest);
  expect([first.rotations, first.hours]).toEqual([[], 72]);
  keys.pass(71);
  expect(await keys.served(manifest)).toMatchObject({ signing: first.signing, rotations: [], hours: 1 });
  keys.pass(1);
  keys.restart();
  const second = await keys.served(manifest);
  expect(second.signing).not.toBe(first.signing);
  expect(second.all).toContain(first.signing);
  expect([second.rotations.length, second.hours]).toEqual([1, 48]);
  const before = await keys.files();
  keys.pass(48);
  const third = await keys.served(manifest);
  expect(third.all).not.toContain(first.signing);
  expect(third.rotations).toEqual([`SigningKey default/main: the key ${first.signing} is removed`]);
  expect((await keys.files()).length).toBe(before.length - 1);
});

it('given a SigningKey that is deleted → its key verifies for 48 hours, while another one signs', async () => {
  const keys = await keysOfTest();
  const first = await keys.served(signingKey(''));
  const second = await keys.served();
  expect(second.signing).not.toBe(first.signing);
  expect(second.all).toContain(first.signing);
  keys.pass(48);
  expect((await keys.served()).all).not.toContain(first.signing);
});

it('given a SigningKey with a fault → its key signs on; suspended → it is served no more', async () => {
  const keys = await keysOfTest();
  const { signing } = await keys.served(signingKey(''));
  expect(await keys.served(signingKey('rotation: {retain: 1h}'))).toMatchObject({ signing, rotations: [] });
  expect((await keys.served(signingKey('suspended: true'))).all).not.toContain(signing);
  expect((await keys.served(signingKey(''))).signing).toBe(signing);
});

it('given an imported key that is replaced → the new one signs, and the former verifies', async () => {
  const keys = await keysOfTest();
  const importing = async () => {
    const pem = (await generateSigningKeyPem('ES256')).trimEnd().replaceAll('\n', '\n    ');
    const secret = `apiVersion: v1\nkind: Secret\nmetadata: {name: own}\nstringData:\n  tls.key: |\n    ${pem}\n`;
    return `${signingKey('importSecretRef: {name: own}')}---\n${secret}`;
  };
  const first = await keys.served(await importing());
  const second = await keys.served(await importing());
  expect(second.signing).not.toBe(first.signing);
  expect(second.all).toContain(first.signing);
  keys.restart();
  // As generated keys do, they stay when the manifest imports none.
  const third = await keys.served(signingKey(''));
  expect(third.all).toEqual(expect.arrayContaining([first.signing, second.signing]));
});

it('given a key file that is deleted → another key signs', async () => {
  const folder = await folderOfTest({});
  const state = await StateFiles.open(folder);
  const keys = new LocalKeys({ state, clock: { now: () => HOUR }, releaseNamespace: 'default' });
  const { ring } = await keys.reconcile([]);
  await state.remove('keys/default.default.ES256.1.pem');
  const { ring: after } = await keys.reconcile([]);
  expect(after.signing?.kid).toEqual(expect.any(String));
  expect(after.signing?.kid).not.toBe(ring.signing?.kid);
  expect(after.find(ring.signing?.kid ?? '')).toBeUndefined();
});
