import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { ReadManifest } from '../../../src/admission/clients/admit-client.ts';
import { ClientReader } from '../../../src/admission/clients/client-reader.ts';
import { readManifest } from '../../../src/admission/kinds/manifest.ts';
import { OAUTH_CLIENT } from '../../../src/admission/kinds/oauth-client.ts';
import { type Schema, valuesOf } from '../../cluster/manifests/generated-manifests.ts';
import { clientDocument, WEB } from '../world.ts';

const CRD = join(import.meta.dirname, '../../../crds/oauthclients.yaml');
const { openAPIV3Schema } = parse(readFileSync(CRD, 'utf8')).spec.versions[0].schema as {
  readonly openAPIV3Schema: { readonly properties: { readonly spec: Schema } };
};

const told = ({ manifest, faults }: ReadManifest) => (manifest === undefined ? { faults } : { spec: manifest.spec });
const toldBySchema = (document: unknown) => told(readManifest(OAUTH_CLIENT.ignore, document));
/** Through JSON, as everything comes that is read this way. */
const manifest = (spec: unknown, metadata: object = {}) =>
  JSON.parse(JSON.stringify(clientDocument(spec as Readonly<Record<string, unknown>>, { uid: 'uid-1', ...metadata })));

describe('a reader of many clients', () => {
  it('says of each what the schema says', () => {
    const reader = new ClientReader();
    const [uid, dash] = ['3f2b8c1e-8d4a-4c5e-9b7f-0a1b2c3d4e5f', '-f2b8c1e-8d4a-4c5e-9b7f-0a1b2c3d4e5f'];
    const faulty = [{ name: 'A' }, { namespace: null }, { uid: 7 }, { uid: dash }, { uid, labels: { a: 1 } }];
    const metadata = fc.constantFrom({}, { name: 'other' }, { uid }, ...faulty);
    const documents = fc.tuple(valuesOf(openAPIV3Schema.properties.spec), metadata);
    const outcomes = { spec: 0, faults: 0 };
    fc.assert(
      fc.property(documents, ([spec, metadata]) => {
        const document = manifest(spec, metadata);
        const expected = toldBySchema(document);
        expect(told(reader.read(document))).toEqual(expected);
        outcomes['spec' in expected ? 'spec' : 'faults']++;
      }),
      { numRuns: 1000 },
    );
    expect(Math.min(outcomes.spec, outcomes.faults)).toBeGreaterThan(50);
  });

  it.each([
    ['no object', 'text'],
    ['another kind', { ...manifest(WEB), kind: 'ClientPolicy' }],
    ['another version', { ...manifest(WEB), apiVersion: 'grantry.dev/v2' }],
    ['no spec', { ...manifest(WEB), spec: undefined }],
    ['a list as spec', manifest([])],
    ['no metadata', { ...manifest(WEB), metadata: undefined }],
  ])('says what is wrong with %s', (_, document) => {
    expect(told(new ClientReader().read(document))).toEqual(toldBySchema(document));
  });

  it('keeps once what clients have in common, and apart what is their own', () => {
    const reader = new ClientReader();
    const one = reader.read(manifest({ ...WEB, displayName: 'One' }, { name: 'one' }));
    const other = reader.read(manifest({ ...WEB, redirectUris: ['https://other.example/cb'] }, { name: 'other' }));
    const third = reader.read(manifest({ ...WEB, requireState: true }));
    const [common, same, different] = [one, other, third].map((read) => read.manifest?.spec.tokens);
    expect(common).toBeDefined();
    expect(same).toBe(common);
    expect(different).not.toBe(common);
    expect(told(one)).toMatchObject({ spec: { displayName: 'One', redirectUris: WEB.redirectUris } });
    expect(told(other)).toMatchObject({ spec: { redirectUris: ['https://other.example/cb'] } });
  });

  it('remembers nothing that is long', () => {
    const reader = new ClientReader();
    const read = (description: string) =>
      reader.read(manifest({ ...WEB, auth: { clientSecret: { extraData: { description } } } })).manifest?.spec.auth;
    expect(read('short')).toBe(read('short'));
    expect(read('l'.repeat(4000))).toEqual(read('l'.repeat(4000)));
    expect(read('l'.repeat(4000))).not.toBe(read('l'.repeat(4000)));
  });

  it('given ten thousand other common parts → parses the first again', () => {
    const reader = new ClientReader();
    const read = (scope: string) => reader.read(manifest({ ...WEB, scopes: [scope] })).manifest?.spec.tokens;
    const first = read('first');
    for (let index = 0; index < 9999; index++) read(`team/${index}`);
    expect(read('first')).toBe(first);
    read('one-more');
    expect(read('first')).toEqual(first);
    expect(read('first')).not.toBe(first);
  });

  it('given two million characters of other common parts → parses the first again', () => {
    const reader = new ClientReader();
    const read = (scope: string, description = '') =>
      reader.read(manifest({ ...WEB, scopes: [scope], auth: { clientSecret: { extraData: { description } } } }))
        .manifest?.spec.tokens;
    const first = read('first');
    for (let index = 0; index < 900; index++) read(`team/${index}`, 'd'.repeat(1500));
    expect(read('first')).toBe(first);
    for (let index = 900; index < 1500; index++) read(`team/${index}`, 'd'.repeat(1500));
    expect(read('first')).not.toBe(first);
    expect(read('first')).toBe(read('first'));
  });

  it.each([
    ['a thousand lists', 'an unknown field', 1000, 'unknown', 'spec'],
    ['lists without end', 'an unknown field', 50_000, 'unknown', 'faults'],
    ['lists without end', 'a field of ours', 50_000, 'scopes', 'faults'],
  ])('survives %s in one another in %s', (_lists, _place, depth, field, outcome) => {
    const text = JSON.stringify(manifest({ grantTypes: ['client_credentials'], [field]: 'deep' }));
    const document = JSON.parse(text.replace('"deep"', '['.repeat(depth) + ']'.repeat(depth)));
    const found = told(new ClientReader().read(document));
    expect(found).toEqual(toldBySchema(document));
    expect(found).toHaveProperty(outcome);
  });

  it('lets no client speak for another by a field of an odd name', () => {
    const reader = new ClientReader();
    const spec = { grantTypes: ['client_credentials'] };
    const text = JSON.stringify(manifest({ ...spec, odd: { scopes: ['admin'], suspended: true }, constructor: 1 }));
    const document = JSON.parse(text.replace('"odd"', '"__proto__"'));
    expect(told(reader.read(document))).toEqual(toldBySchema(manifest(spec)));
    expect(told(reader.read(manifest(spec)))).toEqual(toldBySchema(manifest(spec)));
  });
});
