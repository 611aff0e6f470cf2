import { describe, expect, it } from 'vitest';
import { withoutFinalSlash } from '../../../src/oauth/registry/resources.ts';

describe('what an identifier stands for', () => {
  it.each([
    ['https://notes.example/api', 'https://notes.example/api'],
    ['https://notes.example/api/', 'https://notes.example/api'],
    ['https://notes.example//api//', 'https://notes.example//api'],
    ['///', ''],
    ['', ''],
  ])('%j → %j', (identifier, expected) => {
    expect(withoutFinalSlash(identifier)).toBe(expected);
  });

  it('given an identifier full of slashes → answers as fast as for any other', () => {
    const identifier = `urn:x:${'/'.repeat(150_000)}x`;
    expect(withoutFinalSlash(identifier)).toBe(identifier);
  });
});
