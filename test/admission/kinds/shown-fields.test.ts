// Texts that people are shown, character by character: the API server knows no Default_Ignorable_Code_Point, so its
// characters are written out, and these tests hold the lists to the property.

import { expect, it } from 'vitest';
import { label } from '../../../src/admission/kinds/shown-fields.ts';

const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;
const JOINABLE = /(?![\p{sc=Latin}\p{sc=Greek}\p{sc=Cyrillic}\p{Default_Ignorable_Code_Point}])[\p{L}\p{M}]/u;
const OF_INTEREST = /[\p{L}\p{M}\p{Default_Ignorable_Code_Point}]/u;

const shown = label(10);
const isShown = (text: string) => shown.safeParse(text).success;

const characters: readonly string[] = Array.from({ length: 0x110000 }, (_, code) => String.fromCodePoint(code)).filter(
  (character) => OF_INTEREST.test(character),
);

it('given a letter, a mark or a character that displays ignore → shown unless it cannot be seen', () => {
  expect(characters.length).toBeGreaterThan(100_000);
  expect(characters.filter((character) => isShown(character) === UNSEEN.test(character))).toEqual([]);
});

it('given two of one character with a joiner between them → shown only in scripts that spell with joiners', () => {
  const wrong = characters.filter(
    (character) => isShown(`${character}\u200D${character}`) !== JOINABLE.test(character),
  );
  expect(wrong).toEqual([]);
});
