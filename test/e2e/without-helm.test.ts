// The walk of docs/guides/kubernetes.md that needs no Helm in the cluster: from the CRDs to a token, by the commands that it
// prints. The shared install has their namespace and their class already, so both have other names here.

import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeJwt } from 'jose';
import { afterAll, expect, it } from 'vitest';
import { deleteNamespaces, kubectl, OURS } from './setup/kubectl.ts';
import { IMAGE } from './setup/pods.ts';
import { runPrinted, shellBlocks } from './setup/printed.ts';
import { imageValues, REDIS_IMAGE } from './setup/release.ts';
import { ISSUER } from './setup/shared-install.ts';

const GUIDE = 'docs/guides/kubernetes.md';
const [NAMESPACE, TENANT, CLASS] = ['e2e-by-hand', 'e2e-walk', 'by-hand'];
const [image, redis] = [imageValues(IMAGE), imageValues(REDIS_IMAGE)];
const otherRedis = `--set redis.dev.image.repository=${redis.repository} --set-string redis.dev.image.tag=${redis.tag}`;

/** What the walk prints, and what stands there in its place. */
const INSTEAD: readonly (readonly [string, string])[] = [
  ['grantry-system', NAMESPACE],
  ['shop', TENANT],
  ['registry.example.com/grantry', String(image.repository)],
  ['image.tag=0.1.0', `image.tag=${image.tag}`],
  // The shared install has the policy of this cluster.
  [',admissionPolicy.enabled=true', ''],
  ['--no-hooks', `--no-hooks ${otherRedis} --set className=${CLASS}`],
  ['spec: {', `spec: { className: ${CLASS},`],
];

const folder = mkdtempSync(join(tmpdir(), 'grantry-e2e-'));

afterAll(async () => {
  await runPrinted('if [ -s grantry.yaml ]; then kubectl delete -f grantry.yaml; fi', folder);
  rmSync(folder, { recursive: true });
  await deleteNamespaces(NAMESPACE, TENANT);
});

it('the commands of the guide lead from the CRDs to a token', async () => {
  for (const name of ['crds', 'charts']) symlinkSync(join(import.meta.dirname, '../..', name), join(folder, name));
  const [install = ''] = shellBlocks(GUIDE, 'Without Helm', 1);
  const [token = ''] = shellBlocks(GUIDE, 'The first token', 1);
  expect(install).toMatch(/^kubectl apply -f crds\/\n/);
  const lines = INSTEAD.reduce((text, [printed, instead]) => {
    expect(text).toContain(printed);
    return text.replaceAll(printed, instead);
  }, `${install}\n${token}`);
  const output = await runPrinted(lines, folder);
  await kubectl('label', 'namespace', NAMESPACE, TENANT, OURS);
  const [, accessToken = ''] = output.match(/"access_token":"([^"]+)"/) ?? [];
  expect(decodeJwt(accessToken)).toMatchObject({ iss: ISSUER, sub: `${TENANT}.worker`, scope: `${TENANT}/read` });
});
