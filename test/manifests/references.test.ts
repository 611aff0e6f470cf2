import { describe, expect, it } from 'vitest';
import { manifestReferences } from '../../src/manifests/references.ts';
import { manifestsOf } from './a-folder.ts';

async function referencesOf(text: string, assumeMissing = false) {
  const { objects } = await manifestsOf({ 'a.yaml': text });
  return manifestReferences({ objects, verifiersOf: () => [], assumeMissing });
}

describe('the references of a folder', () => {
  it('are found in the namespace asked about only', async () => {
    const references = await referencesOf(
      ['Secret', 'ConfigMap', 'ServiceAccount']
        .map((kind) => `apiVersion: v1\nkind: ${kind}\nmetadata: {name: a, namespace: team}\nstringData: {k: v}\n`)
        .join('---\n'),
    );
    expect(references.secret('team', 'a')).toMatchObject({ stringData: { k: 'v' } });
    expect(references.secret('default', 'a')).toBeUndefined();
    expect([references.hasConfigMap('team', 'a'), references.hasConfigMap('default', 'a')]).toEqual([true, false]);
    expect([references.hasServiceAccount('team', 'a'), references.hasServiceAccount('team', 'b')]).toEqual([
      true,
      false,
    ]);
  });

  it('are assumed to exist where the folder cannot resolve them', async () => {
    const references = await referencesOf('', true);
    expect(references.secret('team', 'a')).toBe('assumed');
    expect([references.hasConfigMap('x', 'y'), references.hasServiceAccount('x', 'y')]).toEqual([true, true]);
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
