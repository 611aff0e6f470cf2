// examples/credentials/ as its README says: the commands of each section get a token of the client that it is about.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestBrowser } from '../http/sign-in/sign-in-browser.ts';
import { clients, ExampleClone, sections, shown } from './example-clone.ts';
import { answerIn } from './person.ts';

const GUIDE = readFileSync(join(import.meta.dirname, '../../docs/guides/service-accounts.md'), 'utf8');

describe('the clients of examples/credentials/', () => {
  let clone: ExampleClone;
  beforeAll(async () => {
    clone = await ExampleClone.serve();
  });
  afterAll(() => clone.remove());

  function expectToken(token: unknown, name: string) {
    const claims = decodeJwt(String(token));
    expect(claims).toMatchObject({ iss: clone.issuer, client_id: `default.${name}`, scope: 'default/read' });
    return claims;
  }

  it('are all Ready at the start, and each has its section', () => {
    expect([...clients.keys()].toSorted()).toEqual(sections.toSorted());
    for (const name of clients.keys()) expect(clone.output).toMatch(new RegExp(`^ +default\\.${name} .* Ready$`, 'm'));
  });

  it('have every method of the metadata', async () => {
    const metadata = await fetch(`${clone.issuer}/.well-known/oauth-authorization-server`);
    const { token_endpoint_auth_methods_supported: offered } = (await metadata.json()) as Record<string, string[]>;
    expect(offered?.length).toBeGreaterThan(0);
    expect([...clients.values()]).toEqual(expect.arrayContaining(offered ?? []));
  });

  it.each(['client-secret-basic', 'client-secret-post', 'kubernetes-service-account'])(
    '%s → a token by its command',
    async (name) => {
      expectToken((await clone.answer(shown(name))).access_token, name);
    },
  );

  it('none → a token once a person has signed in', async () => {
    const address = shown('none', '').trim().replace('http://localhost:9400', clone.issuer);
    const demo = { username: 'demo', password: 'demo', decision: 'allow' } as const;
    const back = await answerIn(new TestBrowser(clone.issuer, clone.issuer), new URL(address), demo);
    const code = back.searchParams.get('code') ?? '';
    expectToken((await clone.answer(shown('none').replace(/^code=.*/, `code=${code}`))).access_token, 'none');
  });

  it('private-key-jwt → a token by the key that the reader makes', async () => {
    const request = await clone.withOwnKey('private-key-jwt');
    expectToken((await clone.answer(request)).access_token, 'private-key-jwt');
  });

  it('tls-client-auth → a token that is bound to its certificate', async () => {
    const { access_token: token } = await clone.answer(shown('tls-client-auth'));
    expect(expectToken(token, 'tls-client-auth')).toHaveProperty(['cnf', 'x5t#S256']);
  });

  it('self-signed-tls-client-auth → a token by a certificate for the key that the reader makes', async () => {
    const request = await clone.withOwnKey('self-signed-tls-client-auth');
    expectToken((await clone.answer(request)).access_token, 'self-signed-tls-client-auth');
  });

  it('dpop → a token that is bound to a key', async () => {
    const { access_token: token, token_type: type } = await clone.answer(shown('dpop'));
    expect(type).toBe('dpop');
    expect(expectToken(token, 'dpop')).toHaveProperty('cnf.jkt');
  });

  it('the guide on ServiceAccounts › on a laptop → a token by its commands', async () => {
    const [, section = ''] = GUIDE.split('In the clone, `examples/credentials/`');
    const [start, commands = ''] = [...section.matchAll(/```sh\n(.*?)```/gs)].map(([, block]) => block);
    // `npm start` with a folder is `grantry dev` with it, which serves the clone already.
    expect(start).toBe('npm start -- examples/credentials --mtls-port 9443\n');
    expectToken((await clone.printed(commands)).trim(), 'kubernetes-service-account');
  });
});
