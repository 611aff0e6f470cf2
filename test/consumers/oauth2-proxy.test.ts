// oauth2-proxy: what it learns of the person, a refresh, and a sign-out that ends the session at grantry. It verifies by
// go-oidc, which go-oidc.test.ts tries with each algorithm.

import { decodeJwt, decodeProtectedHeader } from 'jose';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { until } from '../until.ts';
import { GuardedPage } from './setup/guarded-page.ts';
import { describeConsumers } from './setup/programs.ts';
import { PERSON, type Provider } from './setup/provider.ts';
import { Visitor } from './setup/visitor.ts';

await describeConsumers(['oauth2-proxy'], (program) => {
  let wiki: GuardedPage;
  let provider: Provider;

  beforeAll(async () => {
    wiki = await GuardedPage.start(program, { spec: { tokens: { idTokenSigningAlgorithm: 'RS256' } } });
    provider = wiki.provider;
  });
  afterAll(() => wiki?.stop());

  async function untilGroup(visitor: Visitor, group: string): Promise<void> {
    await until('the changed group is known', async () => {
      const { 'x-forwarded-groups': groups } = await wiki.handedOn(visitor);
      return groups === group;
    });
    expect(visitor.signIns).toBe(1);
  }

  it('given a sign-in → name, address and groups; a changed group after a refresh; signed out → asked again', async () => {
    const visitor = new Visitor(provider);
    const { username, name, email, groups } = PERSON;
    const headers = await wiki.handedOn(visitor);
    expect(headers).toMatchObject({
      'x-forwarded-preferred-username': username,
      'x-forwarded-email': email,
      'x-forwarded-groups': groups.join(','),
    });
    const idToken = String(headers.authorization).replace('Bearer ', '');
    expect(decodeProtectedHeader(idToken)).toMatchObject({ alg: 'RS256' });
    expect(decodeJwt(idToken)).toMatchObject({ name, email, groups });

    provider.setGroups(['auditors']);
    await untilGroup(visitor, 'auditors');

    // Out at the proxy, which itself ends the session at grantry.
    await visitor.visit(`${wiki.address}/oauth2/sign_out`);
    await visitor.visit(`${wiki.address}/`);
    expect(visitor.signIns).toBe(2);
  });

  it('given new signing keys → a refresh, and a sign-in', async () => {
    const visitor = new Visitor(provider);
    await visitor.visit(`${wiki.address}/`);
    await provider.rotateSigningKey();
    provider.setGroups(['night-shift']);
    await untilGroup(visitor, 'night-shift');
    expect(await wiki.handedOn(new Visitor(provider))).toMatchObject({ 'x-forwarded-groups': 'night-shift' });
  });
});
