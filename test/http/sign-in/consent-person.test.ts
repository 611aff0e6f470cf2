// What the consent page says that a client of OpenID Connect learns of the person, in both languages.

import { describe, expect, it } from 'vitest';
import { OPENID, openidPath, type Query, signedIn } from './openid-world.ts';
import { aWorld } from './sign-in-world.ts';

const ASKS = { ...OPENID, consent: 'Required' } as const;
const ISSUER = 'https://id.shop.example';
const ALL = { scope: 'openid profile email groups' };

/** The text of the consent page, without its markup. */
async function shown(changes: Query, { client = ASKS, language = 'en', person = 'alice' } = {}): Promise<string> {
  const world = await aWorld({ clients: [client], issuer: ISSUER });
  const browser = await signedIn(world, person);
  const { location = '' } = await browser.get(openidPath(world, changes));
  const { status, body } = await browser.get(location, { 'accept-language': language });
  expect(status).toBe(200);
  expect(body).not.toContain('<b>admins');
  const text = body.replaceAll(/<(?!\/?bdi)[^>]*>/g, '\n').replaceAll(/<\/?bdi>/g, '');
  return text.replaceAll(/\s*\n\s*/g, '\n');
}

const teams = (count: number) => Array.from({ length: count }, (_, index) => `team-${index + 1}`).join(', ');

describe('the consent page', () => {
  it('given the scopes profile, email and groups → the name, the address and the first 20 groups', async () => {
    const page = await shown(ALL);
    expect(page).toContain(
      `\nKnow which account is yours\nYour name: Alice Ang (alice)\nYour email address: alice@shop.example\nYour groups: &#60;b&#62;admins, ${teams(19)} and 6 more\n`,
    );
    expect(page.split('Details')[0]).not.toMatch(/\ngroups\n|See which groups/);
    expect(page.split('Details')[1]).toContain('See which groups you are in\ngroups\n');
  });

  it('given a client with globs → only the groups that match', async () => {
    const page = await shown(ALL, { client: { ...ASKS, groups: ['team-2*'] } });
    expect(page).toContain('Your groups: team-2, team-20, team-21, team-22, team-23, team-24, team-25\n');
  });

  it('given the issuer as the only audience → lists no place', async () => {
    const client = { ...ASKS, audiences: [ISSUER], defaultAudience: ISSUER };
    const page = await shown(ALL, { client });
    expect(page).not.toContain('Where this works');
    expect(page).not.toContain(ISSUER);
  });

  it('in German → the same', async () => {
    const page = await shown(ALL, { language: 'de' });
    expect(page).toContain('\nIhr Name: Alice Ang (alice)\nIhre E-Mail-Adresse: alice@shop.example\nIhre Gruppen: ');
    expect(page).toContain(' und 6 weitere\n');
    expect(page).toContain('Sehen, in welchen Gruppen Sie sind\ngroups');
  });

  it.each([
    ['the address alone', 'openid email', 'alice', '\nYour email address: alice@shop.example\n'],
    ['the name of a person without a display name', 'openid profile email groups', 'bob', '\nYour name: bob\n'],
  ])('given only what there is → %s', async (_what, scope, person, expected) => {
    const page = await shown({ scope }, { person });
    expect(page).toContain(expected);
    expect(page).not.toContain('Your groups:');
  });

  it.each([
    ['openid', 'Until you sign out', 'Until access is revoked'],
    ['openid offline_access', 'Until access is revoked', 'Until you sign out'],
    ['shop/read', 'Until access is revoked', 'Until you sign out'],
  ])('given scope %s → says what ends the refresh tokens: %s', async (scope, says, not) => {
    const page = await shown({ scope }, { client: { ...ASKS, scopes: [...ASKS.scopes, 'offline_access'] } });
    expect(page).toContain(`How long\n${says}\n`);
    expect(page).not.toContain(not);
  });

  it.each(['openid', 'profile email groups', 'openid shop/read'])('given scope %s → nothing of that', async (scope) => {
    expect(await shown({ scope })).not.toMatch(/Your (?:name|email address|groups):/);
  });
});
