// The language of a page by what the browser accepts, and the texts of owners in it.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ENGLISH } from '../../../src/http/pages/english.ts';
import { GERMAN } from '../../../src/http/pages/german.ts';
import { pageLanguage, textIn } from '../../../src/http/pages/page-language.ts';
import { SIMPLIFIED_CHINESE } from '../../../src/http/pages/simplified-chinese.ts';

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
    ['zh', 'zh', SIMPLIFIED_CHINESE],
    ['zh-CN,zh;q=0.9,en;q=0.8', 'zh-CN', SIMPLIFIED_CHINESE],
    ['zh-SG', 'zh-SG', SIMPLIFIED_CHINESE],
    ['zh-Hans-HK', 'zh-Hans-HK', SIMPLIFIED_CHINESE],
    ['zh-TW,zh;q=0.9,en-US;q=0.8,en;q=0.7', 'en-US', ENGLISH],
    ['zh-Hant-HK, de;q=0.5', 'de', GERMAN],
    ['zh-TW, zh-CN;q=0.5, en;q=0.4', 'zh-CN', SIMPLIFIED_CHINESE],
    ['zh-TW,zh;q=0.9', 'zh-TW', SIMPLIFIED_CHINESE],
    ['zh-HK, fr;q=0.9, *;q=0.1', 'zh-HK', SIMPLIFIED_CHINESE],
    ['zh-cmn-Hans', 'zh-cmn-Hans', SIMPLIFIED_CHINESE],
    [',-'.repeat(8000), 'en', ENGLISH],
    [`de,${'fr,'.repeat(300)}`, 'de', GERMAN],
    [`de,${'fr,'.repeat(400)}`, 'en', ENGLISH],
  ])('given %s → %s', (accepted, tag, texts) => {
    const language = pageLanguage({ 'accept-language': accepted });
    expect(language.tag).toBe(tag);
    expect(language.texts).toBe(texts);
  });

  it.each([
    ['zh-CN de', 'de', 'zh-CN', SIMPLIFIED_CHINESE],
    ['fr de-CH', 'en', 'de-CH', GERMAN],
    ['fr', 'de', 'de', GERMAN],
    ['zh-TW', 'de', 'de', GERMAN],
    ['zh-TW', 'fr', 'zh-TW', SIMPLIFIED_CHINESE],
    ['* \u{1f511} __proto__', 'de', 'en', ENGLISH],
    ['de', ',-'.repeat(8000), 'de', GERMAN],
  ])('given ui_locales %s and accepted %s → %s', (asked, accepted, tag, texts) => {
    const language = pageLanguage({ 'accept-language': accepted }, asked.split(' '));
    expect([language.tag, language.texts.language]).toEqual([tag, texts.language]);
  });

  const CATALOGUES = [ENGLISH, GERMAN, SIMPLIFIED_CHINESE];
  const word = fc.oneof(
    fc.constantFrom('zh', 'de', 'TW', 'Hant', '*', 'x', '1996', 'q=0'),
    fc.string({ maxLength: 9 }),
  );
  const tags = fc.array(
    fc.array(word, { maxLength: 4 }).map((words) => words.join('-')),
    { maxLength: 12 },
  );
  const weight = fc.oneof(fc.double(), fc.string({ maxLength: 5 }));
  const range = fc.tuple(tags, weight).map(([parts, q]) => `${parts.join('-')};q=${q}`);
  const header = fc.oneof(
    fc.array(range, { maxLength: 20 }).map((ranges) => ranges.join(',')),
    fc.string(),
  );

  it('given any header and any tags → one of the languages, in a tag of which it is', () => {
    fc.assert(
      fc.property(header, tags, (accepted, asked) => {
        const { tag, texts } = pageLanguage({ 'accept-language': accepted }, asked);
        expect(CATALOGUES).toContain(texts);
        expect(tag.slice(0, 2).toLowerCase()).toBe(texts.language.slice(0, 2));
      }),
    );
  });

  it('given any header that has one language alone, by itself → that language', () => {
    fc.assert(
      fc.property(fc.constantFrom(...CATALOGUES), fc.integer({ min: 1, max: 1000 }), (texts, q) => {
        const accepted = `fr;q=0.01, ${texts.language};q=${q / 1000}`;
        expect(pageLanguage({ 'accept-language': accepted }).texts).toBe(texts);
      }),
    );
  });
});

describe('a text of an owner in Chinese', () => {
  it.each([
    ['zh-CN', { 'zh-Hans': '笔记', 'zh-Hant': '筆記' }, '笔记'],
    ['zh-CN', { 'zh-Hant': '筆記', zh: '笔记' }, '笔记'],
    ['zh', { 'zh-TW': '筆記', 'zh-CN': '笔记' }, '笔记'],
    ['zh-Hans', { 'zh-SG': '笔记' }, '笔记'],
    ['zh-CN', { zh: '一', 'zh-hans-cn': '二', 'zh-CN': '三' }, '三'],
    ['zh-Hans-CN', { zh: '一', 'zh-Hans': '二' }, '二'],
    ['zh-TW', { zh: '笔记', 'zh-HK': '筆記' }, '筆記'],
    ['zh-TW', { 'zh-Hans': '笔记' }, '笔记'],
    ['zh-CN', { 'zh-Hant': '筆記', de: 'Notizen' }, '筆記'],
    ['zh-CN', { chinese: '笔记', zh_CN: '笔记', '': '笔记' }, 'Notes'],
  ])('given %s of %j → %s', (tag, translations, shown) => {
    expect(textIn({ tag, texts: SIMPLIFIED_CHINESE }, { text: 'Notes', translations })).toBe(shown);
  });
});

describe('a text of an owner', () => {
  const text = { text: 'Notes', translations: { de: 'Notizen', 'de-AT': 'Notizn', 'zh-hant': '筆記' } };

  it.each([
    ['de', 'Notizen'],
    ['de-CH', 'Notizen'],
    ['de-at', 'Notizn'],
    ['de-AT-1996', 'Notizn'],
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
