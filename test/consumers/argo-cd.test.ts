// Argo CD's own handlers of login, callback and logout, with the ConfigMap of its example and the Secret that grantry writes
// for it. It verifies by go-oidc, which go-oidc.test.ts tries with each algorithm.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { parse } from 'yaml';
import { freePort } from '../free-port.ts';
import { startExampleProvider } from './setup/example-provider.ts';
import { describeConsumers } from './setup/programs.ts';
import { PERSON, type Provider } from './setup/provider.ts';
import { ServedProgram } from './setup/served-program.ts';
import { Visitor } from './setup/visitor.ts';

/** Argo CD reads no other objects; an install gives them the label, and grantry does by its preset. */
const LABELS = { 'app.kubernetes.io/part-of': 'argocd' };

await describeConsumers(['argo-cd'], (program) => {
  const argo = new ServedProgram();
  let address: string;
  let provider: Provider;

  beforeAll(async () => {
    const port = await freePort();
    address = `http://127.0.0.1:${port}`;
    const example = await startExampleProvider({
      program: 'argo-cd',
      addresses: { 'https://argocd.example.com': address },
      spec: { tokens: { idTokenSigningAlgorithm: 'RS256' } },
    });
    ({ provider } = example);
    const objects = join(argo.folder, 'objects.yaml');
    const installed = [
      labelled(parse(example.file('argocd-cm.yaml'))),
      secret('argocd-secret', { 'admin.password': '', 'server.secretkey': 'a key that signs nothing here' }),
      secret('argocd-oauth', example.secret),
    ];
    writeFileSync(objects, installed.map((object) => JSON.stringify(object)).join('\n---\n'));
    const words = ['-listen', `127.0.0.1:${port}`, '-objects', objects];
    await argo.start(program, { words, address: `${address}/session` });
  });
  afterAll(async () => {
    await Promise.all([argo.stop(), provider?.stop()]);
  });
  beforeEach(() => provider.setGroups(PERSON.groups));

  const session = (visitor: Visitor) => visitor.json(`${address}/session`);

  it('given a sign-in → name, address and groups in its session; signed out → none, asked again, and a changed group', async () => {
    const visitor = new Visitor(provider);
    const { name, email, groups } = PERSON;
    expect((await visitor.visit(`${address}/auth/login`)).url.href).toBe(`${address}/`);
    const claims = { iss: provider.issuer, aud: 'argocd.argocd', name, email, groups };
    expect(await session(visitor)).toMatchObject(claims);

    expect((await visitor.visit(`${address}/auth/logout`)).url.href).toBe(`${address}/`);
    expect((await visitor.visit(`${address}/session`)).page.status).toBe(401);
    provider.setGroups(['auditors']);
    await visitor.visit(`${address}/auth/login`);
    expect(visitor.signIns).toBe(2);
    expect(await session(visitor)).toMatchObject({ groups: ['auditors'] });
  });

  it('given new signing keys → its session lasts, and a sign-in', async () => {
    const [visitor, another] = [new Visitor(provider), new Visitor(provider)];
    await visitor.visit(`${address}/auth/login`);
    await provider.rotateSigningKey();
    await another.visit(`${address}/auth/login`);
    const { email } = PERSON;
    for (const one of [visitor, another]) expect(await session(one)).toMatchObject({ email });
  });
});

interface ClusterObject extends Readonly<Record<string, unknown>> {
  readonly metadata: object;
}

function labelled({ metadata, ...object }: ClusterObject): object {
  return { ...object, metadata: { ...metadata, labels: LABELS } };
}

function secret(name: string, data: Readonly<Record<string, string>>): object {
  const inBase64 = Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]);
  const object = { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: 'argocd' } };
  return labelled({ ...object, data: Object.fromEntries(inBase64) });
}
