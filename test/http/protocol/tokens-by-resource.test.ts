import { decodeJwt } from 'jose';
import { describe, expect, it } from 'vitest';
import type { ResourceReference } from '../../../src/oauth/registry/client.ts';
import type { Resource } from '../../../src/oauth/registry/resource.ts';
import { DpopHolder } from '../../dpop-holder.ts';
import { DEFAULT_AUDIENCE, startGrantry } from '../../grantry.ts';
import { aResource, declared } from '../../oauth/a-resource.ts';
import { API, TokenCalls, WEB } from './token-calls.ts';

const NOTES = 'https://notes.example/api';
const MAIL = 'https://mail.example';
const notes = aResource({ identifier: NOTES, scopes: declared('notes.read', 'notes.write'), maxLifetimeSeconds: 120 });
const mail = aResource({
  namespace: 'post',
  name: 'mail',
  identifier: MAIL,
  scopes: declared('mail.read', 'mail.send'),
  allowedClients: [{ namespaces: new Set(['shop']), clients: undefined, scopes: ['mail.read'] }],
});
const bound = aResource({
  name: 'bound',
  identifier: 'https://bound.example/',
  scopes: declared('bound.read'),
  senderConstraint: 'DPoP',
});
const everything = [notes, mail, bound];

const to = (name: string, namespace?: string, scopes?: readonly string[]): ResourceReference => ({
  namespace,
  name,
  scopes,
});
const web = {
  ...WEB,
  name: 'web',
  audiences: [DEFAULT_AUDIENCE],
  scopes: ['read', 'write'],
  defaultScopes: ['read', 'notes.read'],
  defaultAudience: DEFAULT_AUDIENCE,
  resources: [to('notes'), to('mail', 'post'), to('bound'), to('missing')],
};
const opaque = {
  ...web,
  clientId: 'shop.opaque',
  secret: 'the-secret-of-one-with-opaque-tokens',
  tokens: { accessTokenFormat: 'opaque' } as never,
};
/** Permitted by an administrator at audiences that have an owner. */
const listed = {
  clientId: 'shop.listed',
  name: 'listed',
  secret: 'the-secret-of-one-with-listed-audiences',
  audiences: [NOTES, bound.identifier],
  scopes: ['notes.read', 'bound.read', 'read'],
  defaultAudience: NOTES,
};
const clients = [
  web,
  opaque,
  listed,
  { ...API, name: 'api', resourceServerAudiences: [NOTES, MAIL] },
  {
    clientId: 'post.api',
    namespace: 'post',
    name: 'api',
    secret: 'the-secret-of-the-mail-api',
    resourceServerAudiences: [NOTES, MAIL],
  },
];
const grantry = await startGrantry({ clients, resources: everything });
const calls = new TokenCalls(grantry);
const opaqueCalls = calls.as(opaque);
const listedCalls = calls.as(listed);
const notesApi = calls.as(API);
const mailApi = calls.as({ clientId: 'post.api', secret: 'the-secret-of-the-mail-api' });

const ask = (form: Record<string, string>, by = calls) =>
  by.post('/token', { grant_type: 'client_credentials', ...form });
const claimsOf = (token: unknown) => decodeJwt(String(token));
const invalidScope = (reason: string) => ({ status: 400, body: { error: 'invalid_scope' }, reason });
const invalidTarget = (reason: string) => ({ status: 400, body: { error: 'invalid_target' }, reason });

/** A code for the notes API and the mail API. */
const issueCode = (clientId: string = WEB.clientId, grant = {}) =>
  grantry.issueCode(clientId, {
    scope: ['notes.read', 'notes.write', 'mail.read'],
    audiences: [NOTES, MAIL],
    ...grant,
  });

describe('a token of client_credentials', () => {
  it.each([
    ['the scope of one resource', { resource: NOTES, scope: 'notes.write' }, NOTES, 'notes.write'],
    ['what another owner lets it have', { resource: MAIL, scope: 'mail.read' }, MAIL, 'mail.read'],
    ['its own audience', { scope: 'write' }, DEFAULT_AUDIENCE, 'write'],
    ['nothing: those default scopes that the default audience has', {}, DEFAULT_AUDIENCE, 'read'],
    ['no scope: those default scopes that the resource has', { resource: NOTES }, NOTES, 'notes.read'],
  ])('given %s → is for that audience and that scope', async (_, form, audience, scope) => {
    const { status, body } = await ask(form);
    expect({ status, scope: body.scope }).toEqual({ status: 200, scope });
    expect(claimsOf(body.access_token)).toMatchObject({ aud: audience, scope });
  });

  it.each([
    [
      'a scope of another resource',
      { resource: NOTES, scope: 'notes.read mail.read' },
      invalidScope('scope_not_of_resource'),
    ],
    [
      'a scope of its manifest at a resource',
      { resource: NOTES, scope: 'read' },
      invalidScope('scope_not_of_resource'),
    ],
    ['a scope of a resource at its own audience', { scope: 'notes.read' }, invalidScope('scope_not_of_resource')],
    [
      'a scope that the other owner keeps',
      { resource: MAIL, scope: 'mail.send' },
      invalidScope('scope_not_registered'),
    ],
    ['no scope where the resource has no default', { resource: MAIL }, invalidScope('scope_missing')],
    [
      'a resource that is not granted',
      { resource: 'https://missing.example', scope: 'read' },
      invalidTarget('resource_not_registered'),
    ],
    [
      'a resource in another spelling',
      { resource: `${NOTES}/`, scope: 'notes.read' },
      invalidTarget('resource_not_registered'),
    ],
    [
      'no proof where the resource wants one',
      { resource: bound.identifier, scope: 'bound.read' },
      invalidTarget('sender_constraint_required'),
    ],
  ])('given %s → is refused', async (_, form, refusal) => {
    expect(await ask(form)).toMatchObject(refusal);
  });

  it('given a proof where the resource wants one → is bound to its key', async () => {
    const holder = new DpopHolder();
    const form = { grant_type: 'client_credentials', resource: bound.identifier, scope: 'bound.read' };
    const { status, body } = await calls.post(
      '/token',
      form,
      holder.proof(`${grantry.issuer}/token`, grantry.clock.now()),
    );
    expect(status).toBe(200);
    expect(claimsOf(body.access_token)).toMatchObject({ aud: bound.identifier, cnf: { jkt: holder.thumbprint } });
  });
});

describe('the life of a token', () => {
  it('is that of the client, unless the resource ends it earlier', async () => {
    const own = await ask({ scope: 'read' });
    expect(own.body.expires_in).toBe(600);
    const capped = await ask({ resource: NOTES, scope: 'notes.read' });
    expect(capped.body.expires_in).toBe(120);
    const { iat = 0, exp } = claimsOf(capped.body.access_token);
    expect(exp).toBe(iat + 120);
  });

  it('by a code and its refreshes → ends with the cap at the resource that has one, and there alone', async () => {
    const { body: first } = await calls.redeem(await issueCode(), { resource: NOTES });
    const { body: second } = await calls.refresh(first.refresh_token, { resource: MAIL });
    const { body: third } = await calls.refresh(second.refresh_token, { resource: NOTES });
    for (const [{ expires_in, access_token }, seconds] of [
      [first, 120],
      [second, 600],
      [third, 120],
    ] as const) {
      const { iat = 0, exp = 0 } = claimsOf(access_token);
      expect([expires_in, exp - iat]).toEqual([seconds, seconds]);
    }
  });

  it.each([
    ['client_credentials', () => ask({ resource: NOTES, scope: 'notes.read' }, opaqueCalls)],
    ['authorization_code', async () => opaqueCalls.redeem(await issueCode(opaque.clientId), { resource: NOTES })],
    [
      'refresh_token',
      async () => {
        const { body } = await opaqueCalls.redeem(await issueCode(opaque.clientId), { resource: MAIL });
        return opaqueCalls.refresh(body.refresh_token, { resource: NOTES });
      },
    ],
  ])('given %s and an opaque token → ends with the cap at introspection as well', async (_, obtain) => {
    const { body } = await obtain();
    expect(body.expires_in).toBe(120);
    const { body: told } = await notesApi.introspect(body.access_token);
    expect(told).toMatchObject({ active: true, aud: NOTES });
    expect(Number(told.exp) - Number(told.iat)).toBe(120);
    grantry.clock.advance(120_000);
    expect(await notesApi.isActive(body.access_token)).toBe(false);
  });
});

describe('a grant for several resources', () => {
  it.each([
    ['the scope that this resource has', { resource: MAIL }, MAIL, 'mail.read'],
    ['the scope that the other one has', { resource: NOTES }, NOTES, 'notes.read notes.write'],
    ['the first audience where none is named', {}, NOTES, 'notes.read notes.write'],
  ])('gives by its code %s', async (_, changes, aud, scope) => {
    const { body } = await calls.redeem(await issueCode(), changes);
    expect(body.scope).toBe(scope);
    expect(claimsOf(body.access_token)).toMatchObject({ aud, scope });
  });

  it('gives by a refresh each audience its own scope, also where the whole scope is asked for again', async () => {
    const { body } = await calls.redeem(await issueCode());
    const forMail = await calls.refresh(body.refresh_token, {
      resource: MAIL,
      scope: 'notes.read notes.write mail.read',
    });
    expect(claimsOf(forMail.body.access_token)).toMatchObject({ aud: MAIL, scope: 'mail.read' });
    const forNotes = await calls.refresh(forMail.body.refresh_token, { resource: NOTES, scope: 'notes.read' });
    expect(claimsOf(forNotes.body.access_token)).toMatchObject({ aud: NOTES, scope: 'notes.read' });
  });

  it.each([
    ['only a scope of the other resource', { resource: MAIL, scope: 'notes.read' }, invalidScope('scope_exceeded')],
    ['a scope beyond the grant', { resource: MAIL, scope: 'mail.send' }, invalidScope('scope_exceeded')],
    ['a resource beyond the grant', { resource: DEFAULT_AUDIENCE }, invalidTarget('target_exceeded')],
    ['a resource that wants a proof', { resource: bound.identifier }, invalidTarget('sender_constraint_required')],
  ])('given %s → refuses the refresh, and the token stays good', async (_, changes, refusal) => {
    const { body } = await calls.redeem(await issueCode());
    expect(await calls.refresh(body.refresh_token, changes)).toMatchObject(refusal);
    expect((await calls.refresh(body.refresh_token)).status).toBe(200);
  });

  it('given only a resource that wants a proof → refuses the code without one, and the code stays good', async () => {
    const code = await issueCode(WEB.clientId, { scope: ['bound.read'], audiences: [bound.identifier] });
    expect(await calls.redeem(code)).toMatchObject(invalidTarget('sender_constraint_required'));
    const proof = new DpopHolder().proof(`${grantry.issuer}/token`, grantry.clock.now());
    expect(await calls.redeem(code, {}, proof)).toMatchObject({ status: 200, body: { token_type: 'DPoP' } });
  });
});

describe('a change of a resource', () => {
  const withResources = async (
    resources: readonly Resource[],
    during: () => Promise<void>,
    withheld: readonly Resource[] = [],
  ) => {
    grantry.setResources(resources, withheld);
    try {
      await during();
    } finally {
      grantry.setResources(everything);
    }
  };

  it('that is deleted → its refresh is invalid_target, the rest of the grant lives, and it is no kill switch', async () => {
    const { body } = await calls.redeem(await issueCode());
    let next = body.refresh_token;
    await withResources([mail, bound], async () => {
      expect(await calls.refresh(next, { resource: NOTES })).toMatchObject(invalidTarget('target_exceeded'));
      const rest = await calls.refresh(next);
      expect(claimsOf(rest.body.access_token)).toMatchObject({ aud: MAIL, scope: 'mail.read' });
      next = rest.body.refresh_token;
    });
    const again = await calls.refresh(next, { resource: NOTES });
    expect(claimsOf(again.body.access_token)).toMatchObject({ aud: NOTES, scope: 'notes.read notes.write' });
  });

  it('that is the only one of a grant and deleted → invalid_target, and the token stays good', async () => {
    const { body } = await calls.redeem(await issueCode(WEB.clientId, { scope: ['mail.read'], audiences: [MAIL] }));
    await withResources([notes], async () => {
      for (const changes of [{}, { resource: MAIL }, { scope: 'mail.read' }]) {
        expect(await calls.refresh(body.refresh_token, changes)).toMatchObject(invalidTarget('target_exceeded'));
      }
    });
    expect((await calls.refresh(body.refresh_token)).status).toBe(200);
  });

  it('whose grant is withdrawn → bites at the next token request of that client, and only for that resource', async () => {
    const closed = { ...mail, allowedClients: [] };
    await withResources([notes, closed, bound], async () => {
      expect(await ask({ resource: MAIL, scope: 'mail.read' })).toMatchObject(invalidTarget('resource_not_registered'));
      expect((await ask({ resource: NOTES, scope: 'notes.read' })).status).toBe(200);
      expect((await ask({ scope: 'read' })).status).toBe(200);
    });
  });

  it('that is withheld → its restrictions and introspection stay, references and metadata get nothing', async () => {
    const { body: before } = await ask({ resource: NOTES, scope: 'notes.read' });
    const metadata = () => fetch(grantry.url('/resources/shop/notes')).then(({ status }) => status);
    expect(await metadata()).toBe(200);
    const withheld = [notes, bound].map((resource) => ({ ...resource, allowedClients: [], isDiscoverable: false }));
    const during = async () => {
      expect(await ask({ resource: NOTES, scope: 'notes.read' })).toMatchObject(
        invalidTarget('resource_not_registered'),
      );
      const { body: after } = await ask({ resource: NOTES, scope: 'notes.read' }, listedCalls);
      expect(after.expires_in).toBe(120);
      expect(await ask({ resource: NOTES, scope: 'read' }, listedCalls)).toMatchObject(
        invalidScope('scope_not_registered'),
      );
      expect(await ask({ resource: bound.identifier, scope: 'bound.read' }, listedCalls)).toMatchObject(
        invalidTarget('sender_constraint_required'),
      );
      for (const { access_token: token } of [before, after]) {
        expect([await notesApi.isActive(token), await mailApi.isActive(token)]).toEqual([true, false]);
      }
      expect(await metadata()).toBe(404);
    };
    await withResources([mail], during, withheld);
    await withResources([], during, withheld);
    expect((await ask({ resource: NOTES, scope: 'notes.read' })).status).toBe(200);
  });

  it('that loses a scope → new tokens are without it, and a request for it is invalid_scope', async () => {
    const { body } = await calls.redeem(await issueCode());
    await withResources([{ ...notes, scopes: declared('notes.read') }, mail, bound], async () => {
      expect(await calls.refresh(body.refresh_token, { scope: 'notes.write' })).toMatchObject(
        invalidScope('scope_exceeded'),
      );
      const rest = await calls.refresh(body.refresh_token);
      expect(rest.body.scope).toBe('notes.read');
    });
  });
});

describe('introspection of a token for a resource', () => {
  it('answers the API of the owner’s namespace, not another that names the same audience', async () => {
    const { body } = await ask({ resource: MAIL, scope: 'mail.read' });
    expect(await mailApi.isActive(body.access_token)).toBe(true);
    expect(await notesApi.isActive(body.access_token)).toBe(false);
    const { body: other } = await ask({ resource: NOTES, scope: 'notes.read' });
    expect(await mailApi.isActive(other.access_token)).toBe(false);
    expect(await notesApi.isActive(other.access_token)).toBe(true);
  });
});
