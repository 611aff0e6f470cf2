import { describe, expect, it } from 'vitest';
import { manifestReferences } from '../../src/manifests/references.ts';
import { manifestsOf } from './a-folder.ts';

async function referencesOf(text: string, assumeMissing = false) {
  const { objects } = await manifestsOf({ 'a.yaml': text });
  return manifestReferences({ objects, verifiersOf: () => [], assumeMissing });
}

const DATA: Readonly<Record<string, string>> = { Secret: 'stringData: {k: v}\n', ConfigMap: 'data: {k: w}\n' };

describe('the references of a folder', () => {
  it('are found in the namespace asked about only', async () => {
    const references = await referencesOf(
      ['Secret', 'ConfigMap', 'ServiceAccount']
        .map((kind) => `apiVersion: v1\nkind: ${kind}\nmetadata: {name: a, namespace: team}\n${DATA[kind] ?? ''}`)
        .join('---\n'),
    );
    expect(references.secret('team', 'a')).toMatchObject({ stringData: { k: 'v' } });
    expect(references.secret('default', 'a')).toBeUndefined();
    expect(references.configMap('team', 'a')).toMatchObject({ data: { k: 'w' } });
    expect(references.configMap('default', 'a')).toBeUndefined();
    expect(references.serviceAccountUid('team', 'a')).toMatch(/^[0-9a-f-]{36}$/);
    expect(references.serviceAccountUid('team', 'b')).toBeUndefined();
  });

  it('give a ServiceAccount the same uid whenever the folder is read, another to another, and that of its manifest', async () => {
    const account = (name: string, uid = '') =>
      `apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: ${name}, namespace: team${uid}}\n---\n`;
    const [once, again] = [await referencesOf(account('a') + account('b')), await referencesOf(account('a'))];
    expect(again.serviceAccountUid('team', 'a')).toBe(once.serviceAccountUid('team', 'a'));
    expect(once.serviceAccountUid('team', 'b')).not.toBe(once.serviceAccountUid('team', 'a'));
    expect((await referencesOf(account('c', ', uid: c-1'))).serviceAccountUid('team', 'c')).toBe('c-1');
  });

  it('are assumed to exist where the folder cannot resolve them', async () => {
    const references = await referencesOf('', true);
    expect(references.secret('team', 'a')).toBe('assumed');
    expect([references.configMap('x', 'y'), references.serviceAccountUid('x', 'y')]).toEqual(['assumed', 'assumed']);
  });

  it('give a Namespace its labels and always its own name as one', async () => {
    const label = 'kubernetes.io/metadata.name';
    const references = await referencesOf(
      `apiVersion: v1\nkind: Namespace\nmetadata: {name: team, labels: {tier: gold, odd: 5, ${label}: other}}`,
    );
    expect(references.namespaceLabels('team')).toEqual({ tier: 'gold', [label]: 'team' });
    expect(references.namespaceLabels('nowhere')).toEqual({ [label]: 'nowhere' });
  });
});
