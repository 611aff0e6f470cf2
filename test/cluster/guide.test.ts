// What the guide has people apply: a real API server takes it as it stands there, and nobody but whom the guide names can
// reach the admin port.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { Manifest } from './cluster.ts';
import { sharedCluster } from './shared-cluster.ts';

const ADMIN_PORT = 9401;

const guide = readFileSync(join(import.meta.dirname, '../../docs/guides/kubernetes.md'), 'utf8');
const [, shown = ''] = guide.match(/```yaml\n# grantry\.yaml\n(.*?)```/s) ?? [];

interface Rule {
  readonly ports?: readonly { readonly port: number }[];
  readonly from?: readonly object[];
}

it('the manifests of the walk-through are valid', async () => {
  const cluster = sharedCluster();
  const namespace = await cluster.namespace();
  const input = shown.replaceAll('grantry-system', namespace).replaceAll('IMAGE', 'grantry');
  const { code, output, errors } = await cluster.kubectl(
    ['apply', '--dry-run=server', '--validate=strict', '-f', '-'],
    { input },
  );
  expect([code, errors]).toEqual([0, '']);
  expect(output.match(/created/g)?.length).toBe(6);
});

it('the admin port of every pod of the walk-through is open to peers that are named, and to no others', () => {
  const objects = parseAllDocuments(shown).map((document) => document.toJS() as Manifest);
  const specs = (kind: string) => objects.filter((object) => object.kind === kind).map(({ spec }) => spec as never);
  const deployments: { template: { metadata: { labels: object } } }[] = specs('Deployment');
  const policies: { podSelector: { matchLabels: object }; ingress: Rule[] }[] = specs('NetworkPolicy');
  expect(deployments.length).toBe(2);
  for (const { template } of deployments) {
    const [policy, ...others] = policies.filter(
      ({ podSelector }) => JSON.stringify(podSelector.matchLabels) === JSON.stringify(template.metadata.labels),
    );
    const opening = (policy?.ingress ?? []).filter(
      ({ ports }) => ports?.some(({ port }) => port === ADMIN_PORT) ?? true,
    );
    expect([others, opening.length]).toEqual([[], 1]);
    expect(opening[0]?.from?.length).toBeGreaterThan(0);
    for (const peer of opening[0]?.from ?? []) expect(JSON.stringify(peer)).toMatch(/"matchLabels":\{"/);
  }
});
