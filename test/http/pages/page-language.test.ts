// The language of a page by what the browser accepts, and the texts of owners in it.

import { describe, expect, it } from 'vitest';
import { ENGLISH } from '../../../src/http/pages/english.ts';
import { GERMAN } from '../../../src/http/pages/german.ts';
import { pageLanguage, textIn } from '../../../src/http/pages/page-language.ts';

describe('the language of a page', () => {
  it.each([
    [undefined, 'en', ENGLISH],
    ['de', 'de', GERMAN],
    ['de-AT,de;q=0.9,en;q=0.5', 'de-AT', GERMAN],
    ['en;q=0.1, DE-ch', 'DE-ch', GERMAN],
    ['fr, de;q=0.5, en;q=0.4', 'de', GERMAN],
    ['en-GB, de', 'en-GB', ENGLISH],
    ['fr', 'en', ENGLISH],
    ['*', 'en', ENGLISH],
    ['fr, *;q=0.5, de;q=0.1', 'en', ENGLISH],
    ['de;q=0, en', 'en', ENGLISH],
    ['constructor, __proto__', 'en', ENGLISH],
    [';;,,=q de', 'en', ENGLISH],
    [',-'.repeat(8000), 'en', ENGLISH],
  ])('given %s → %s', (accepted, tag, texts) => {
    const language = pageLanguage({ 'accept-language': accepted });
    expect(language.tag).toBe(tag);
    expect(language.texts).toBe(texts);
  });
});

describe('a text of an owner', () => {
  const text = { text: 'Notes', translations: { de: 'Notizen', 'de-AT': 'Notizn', 'zh-hant': '筆記' } };

  it.each([
    ['de', 'Notizen'],
    ['de-CH', 'Notizen'],
    ['de-at', 'Notizn'],
    ['zh-Hant', '筆記'],
    ['fr', 'Notes'],
    ['constructor', 'Notes'],
    ['__proto__', 'Notes'],
  ])('given %s → %s', (tag, shown) => {
    expect(textIn({ tag, texts: ENGLISH }, text)).toBe(shown);
  });

  it('given no text and no translation for the language → undefined', () => {
    expect(textIn({ tag: 'fr', texts: ENGLISH }, { ...text, text: undefined })).toBeUndefined();
  });
});
