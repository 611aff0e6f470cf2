// Argo CD's own code over the ConfigMap of examples/gitops, for every kind of crds/. What a running controller writes into a
// status, and what Flux makes of it: test/cluster/manifests/gitops.test.ts.

import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { freePort } from '../free-port.ts';
import { describeConsumers } from './setup/programs.ts';
import { ServedProgram } from './setup/served-program.ts';

const ROOT = join(import.meta.dirname, '../..');
const KINDS = globSync('crds/*.yaml', { cwd: ROOT }).map(
  (file) => parse(readFileSync(join(ROOT, file), 'utf8')).spec.names.kind as string,
);
/** Argo CD reads no objects without it. */
const labels = { 'app.kubernetes.io/part-of': 'argocd' };

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

const ready = (status: string, reason: string): Condition => ({ type: 'Ready', status, reason, message: 'It is so.' });
const progress = (type: 'Reconciling' | 'Stalled', reason: string): Condition => ({
  type,
  status: 'True',
  reason,
  message: 'This stands in its way.',
});

/** The status of an object of generation 2, and what Argo CD makes of it. */
const CASES: readonly (readonly [string, object | undefined, object])[] = [
  ['no status', undefined, { status: 'Progressing', message: 'Waiting for grantry.' }],
  [
    'the conditions of a new object',
    { conditions: [ready('Unknown', 'Pending')] },
    { status: 'Progressing', message: 'Waiting for grantry.' },
  ],
  [
    'the status of an older generation',
    { observedGeneration: 1, conditions: [ready('True', 'Ready')] },
    { status: 'Progressing', message: 'Waiting for grantry.' },
  ],
  [
    'Ready',
    { observedGeneration: 2, conditions: [ready('True', 'Ready')] },
    { status: 'Healthy', message: 'It is so.' },
  ],
  [
    'Reconciling',
    { observedGeneration: 2, conditions: [ready('False', 'Pending'), progress('Reconciling', 'Pending')] },
    { status: 'Progressing', message: 'It is so.' },
  ],
  [
    'Stalled',
    { observedGeneration: 2, conditions: [ready('False', 'Refused'), progress('Stalled', 'Refused')] },
    { status: 'Degraded', message: 'This stands in its way.' },
  ],
  [
    'no longer Stalled',
    {
      observedGeneration: 2,
      conditions: [{ ...progress('Stalled', 'Refused'), status: 'False' }, ready('True', 'Ready')],
    },
    { status: 'Healthy', message: 'It is so.' },
  ],
  [
    'suspended',
    { observedGeneration: 2, conditions: [ready('False', 'Suspended'), progress('Stalled', 'Suspended')] },
    { status: 'Suspended', message: 'This stands in its way.' },
  ],
];

await describeConsumers(['argo-cd'], (program) => {
  const argo = new ServedProgram();
  let address: string;

  beforeAll(async () => {
    const port = await freePort();
    address = `http://127.0.0.1:${port}/health`;
    const objects = join(argo.folder, 'objects.yaml');
    const example = parse(readFileSync(join(ROOT, 'examples/gitops/argocd-cm.yaml'), 'utf8'));
    const secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'argocd-secret', namespace: 'argocd', labels },
    };
    const data = { 'server.secretkey': Buffer.from('a key that signs nothing here').toString('base64') };
    const installed = [
      { ...example, metadata: { ...example.metadata, labels } },
      { ...secret, data },
    ];
    writeFileSync(objects, installed.map((object) => JSON.stringify(object)).join('\n---\n'));
    await argo.start(program, { words: ['-listen', `127.0.0.1:${port}`, '-objects', objects], address });
  });
  afterAll(() => argo.stop());

  async function health(kind: string, status: object | undefined, metadata: object = {}): Promise<unknown> {
    const object = {
      apiVersion: 'grantry.dev/v1alpha1',
      kind,
      metadata: { name: 'a', namespace: 'shop', generation: 2, ...metadata },
      ...(status !== undefined && { status }),
    };
    const response = await fetch(address, { method: 'POST', body: JSON.stringify(object) });
    const text = await response.text();
    expect([text, response.status]).toEqual([text, 200]);
    return JSON.parse(text);
  }

  describe.each(KINDS)('of a %s', (kind) => {
    it.each(CASES)('given %s → its health', async (_, status, expected) => {
      expect(await health(kind, status)).toEqual(expected);
    });

    it('given that it is being deleted → it goes', async () => {
      const deletionTimestamp = '2026-01-01T00:00:00Z';
      expect(await health(kind, CASES[3]?.[1], { deletionTimestamp })).toMatchObject({ status: 'Progressing' });
    });
  });

  it('given a kind without a script → no health of its own', async () => {
    expect(await health('Unheard', undefined)).toBeNull();
  });
});
