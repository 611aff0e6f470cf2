// No token passes for another one (RFC 8725 §2.8, §3.11, §3.12): each kind, and each forged in every way, at every place that takes
// another kind. The answer is the one to any garbage, and nothing is used up (docs/scope.md: C13).

import { beforeAll, describe, expect, it } from 'vitest';
import { type Forgery, forgeriesOf } from './forged-tokens.ts';
import { type Answer, type Place, placesOf } from './token-places.ts';
import { aTokenWorld, authorizePath, type Kind, type TokenWorld, WIKI } from './token-world.ts';

const world: TokenWorld = await aTokenWorld();
const places = placesOf(world);
const NAMES = [...places.keys()];

function placeOf(name: string): Place {
  const place = places.get(name);
  if (place === undefined) throw new Error(`no place ${name}`);
  return place;
}

const refusals = new Map<string, Promise<Answer>>();

/** The answer of a place to what is no token at all. A header holds a token of some characters only. */
function refusalAt(name: string, token = ''): Promise<Answer> {
  const garbage = /^[\w.~+/=-]*$/.test(token) ? 'eyJ4.eyJ5.eno' : 'a "b"';
  const known = refusals.get(name + garbage) ?? placeOf(name).present(garbage);
  refusals.set(name + garbage, known);
  return known;
}

/** That a place takes these. */
async function expectTaken(name: string, tokens: Readonly<Record<Kind, string>>): Promise<void> {
  const place = placeOf(name);
  for (const kind of place.takes) {
    expect(await place.present(tokens[kind], kind), `${kind} at ${name}`).not.toEqual(await refusalAt(name));
  }
}

describe.each(NAMES)('given at %s', (name) => {
  const place = placeOf(name);
  const { idTokens, accessTokens, foreign } = world.keys;
  let tokens: Readonly<Record<Kind, string>>;
  beforeAll(async () => {
    tokens = await world.tokens();
  });

  it('a token of each kind → taken if it is for that, else refused as garbage is, and used up nowhere', async () => {
    for (const [kind, token] of Object.entries(tokens) as [Kind, string][]) {
      if (place.takes.includes(kind)) continue;
      world.takeWrites();
      expect(await place.present(token, kind), kind).toEqual(await refusalAt(name));
      expect(world.takeWrites(), kind).toEqual([]);
    }
    await expectTaken(name, tokens);
  });

  it.each<[Kind, Parameters<typeof forgeriesOf>[1]]>([
    ['ID token', { key: idTokens, otherKey: accessTokens, ownKey: foreign }],
    ['access token', { key: accessTokens, otherKey: idTokens, ownKey: foreign }],
    ['logout token', { key: idTokens, otherKey: accessTokens, ownKey: foreign }],
  ])('a forged %s → refused as garbage is, and nothing is used up', async (kind, material) => {
    const forgeries: readonly Forgery[] = await forgeriesOf(tokens[kind], material);
    const wrong: unknown[] = [];
    world.takeWrites();
    for (const [fault, token] of forgeries) {
      const [answer, refusal] = [await place.present(token, kind), await refusalAt(name, token)];
      if (JSON.stringify(answer) !== JSON.stringify(refusal)) wrong.push({ fault, answer, refusal });
    }
    expect(wrong).toEqual([]);
    expect(world.takeWrites()).toEqual([]);
  });
});

it('tokens that were given everywhere else → are good where they belong', async () => {
  const tokens = await world.tokens();
  for (const place of places.values()) {
    for (const [kind, token] of Object.entries(tokens) as [Kind, string][]) {
      if (!place.takes.includes(kind)) await place.present(token, kind);
    }
  }
  // A revocation is last: it ends what the others take.
  for (const name of NAMES.filter((each) => each !== '/revoke')) await expectTaken(name, tokens);
  await expectTaken('/revoke', tokens);
});

it('the hint of another client → refused as garbage is, and the session lives', async () => {
  const { 'ID token': hint } = await world.tokens(WIKI);
  for (const name of ['id_token_hint at /authorize', 'id_token_hint at /logout, beside client_id']) {
    expect(await placeOf(name).present(hint)).toEqual(await refusalAt(name));
  }
  const { location = '' } = await world.browser.get(authorizePath({ prompt: 'none' }));
  expect(new URL(location).searchParams.has('code')).toBe(true);
});
