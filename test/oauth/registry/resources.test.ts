import { describe, expect, it } from 'vitest';
import { Resources, withoutFinalSlash } from '../../../src/oauth/registry/resources.ts';
import { aResource } from '../a-resource.ts';

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

describe('a withheld resource', () => {
  const mail = aResource({ name: 'mail', identifier: 'https://mail.example' });
  const notes = aResource();

  it('has its identifier, and no name', () => {
    const resources = new Resources([mail], [notes]);
    expect(resources.ownerOf(`${notes.identifier}/`)).toBe(notes);
    expect(resources.find('shop', 'notes')).toBeUndefined();
    expect([resources.find('shop', 'mail'), resources.ownerOf(mail.identifier)]).toEqual([mail, mail]);
  });

  it('has its identifier where no resource is accepted', () => {
    expect(new Resources([], [notes]).ownerOf(notes.identifier)).toBe(notes);
  });
});
