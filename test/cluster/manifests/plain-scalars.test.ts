// Plain scalars of YAML, asked of a real API server: grantry reads each as the API server reads it.

import { expect, it } from 'vitest';
import { fieldsOf } from '../../../src/admission/kinds/manifest.ts';
import { parseFile } from '../../../src/manifests/documents.ts';
import { shortScalars } from '../../manifests/short-scalars.ts';
import { until } from '../../until.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';

const cluster = sharedCluster();

const LONGER = [
  ...['18446744073709551615', '18446744073709551616', '9223372036854775808', '-9223372036854775809', '1e308', '1e309'],
  ...[
    '0xffffffffffffffff',
    '0x10000000000000000',
    '-0x8000000000000000',
    '-0x8000000000000001',
    '0X1F',
    '0O17',
    '-0B1',
  ],
  ...[
    '0777777777777777777777777',
    '07777777777777777777777',
    '.5e999',
    '1e-999',
    '0b+11',
    '-0b-1',
    '.1_0',
    '._1',
    '.1_',
  ],
  ...['1_0e1_0', '0_x1f', '10:30', '2001-01-01', '2001-01-01T10:30:00Z', 'yes', 'Off', 'null', 'Null', 'nULL', 'tRue'],
];

/** A kind whose objects may hold anything. */
async function freeKind(): Promise<string> {
  const group = 'scalars.example.com';
  await cluster.apply({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `scalars.${group}` },
    spec: {
      group,
      scope: 'Cluster',
      names: { plural: 'scalars', singular: 'scalar', kind: 'Scalar', listKind: 'ScalarList' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        },
      ],
    },
  });
  const path = `/apis/${group}/v1/scalars`;
  await until('it is served', async () => (await cluster.call('GET', path)).status === 200);
  return path;
}

it('given every short plain scalar → the value that the API server reads', async () => {
  const path = await freeKind();
  const scalars = [...shortScalars(3), ...LONGER];
  const head = 'apiVersion: scalars.example.com/v1\nkind: Scalar\nmetadata: {name: all}\n';
  const text = `${head}values:\n${scalars.map((scalar, index) => `  v${index}: ${scalar}\n`).join('')}`;
  const answer = await cluster.call('POST', `${path}?dryRun=All`, { text, contentType: 'application/yaml' });
  expect([answer.status, answer.body.message]).toEqual([201, undefined]);
  const { documents, faults } = parseFile('all.yaml', Buffer.from(text));
  expect(faults).toEqual([]);
  const values = fieldsOf(fieldsOf(documents[0]?.value).values);
  const differing = scalars.flatMap((scalar, index) => {
    const [ours, theirs] = [values[`v${index}`], answer.body.values[`v${index}`]];
    return ours === theirs ? [] : [{ scalar, ours, theirs }];
  });
  expect(differing).toEqual([]);
});
