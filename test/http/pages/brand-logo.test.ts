// Which files are a logo that browsers can show.

import { describe, expect, it } from 'vitest';
import { BrandLogoError, brandLogo } from '../../../src/http/pages/brand.ts';
import { PNG, SVG } from './logos.ts';

const bom = Buffer.from('\ufeff');
const utf16 = Buffer.from(`\ufeff${SVG}`, 'utf16le');
/** A PNG with more bytes between its chunks. */
const padded = (length: number) =>
  Buffer.concat([PNG.subarray(0, 60), Buffer.alloc(length - PNG.length), PNG.subarray(60)]);

describe('a logo', () => {
  it.each([
    ['a PNG', PNG, /^\/assets\/logo\.[0-9a-f]{16}\.png$/, 'image/png'],
    ['a PNG of 64 KiB', padded(64 * 1024), /\.png$/, 'image/png'],
    ['an SVG with a document type', SVG, /^\/assets\/logo\.[0-9a-f]{16}\.svg$/, 'image/svg+xml'],
    ['an SVG behind a byte order mark', Buffer.concat([bom, SVG]), /\.svg$/, 'image/svg+xml'],
  ])('given %s → as it is, with a path of its content', async (_what, content, path, contentType) => {
    const logo = await brandLogo(content);
    expect(logo).toMatchObject({ content, contentType });
    expect(logo.path).toMatch(path);
  });

  it('given another content → another path', async () => {
    const [one, other] = [
      await brandLogo(SVG),
      await brandLogo(Buffer.from(String(SVG).replace('rx="20"', 'rx="30"'))),
    ];
    expect(one.path).not.toBe(other.path);
  });

  it.each([
    ['nothing', Buffer.alloc(0)],
    ['a JPEG', Buffer.from([0xff, 0xd8, 0xff, 0xe0])],
    ['a PNG that is cut off', PNG.subarray(0, 60)],
    ['the signature of a PNG alone', PNG.subarray(0, 8)],
    ['a PNG whose line ends were converted', Buffer.concat([PNG.subarray(0, 4), PNG.subarray(5)])],
    ['a PNG above 64 KiB', padded(64 * 1024 + 1)],
    ['an SVG above 64 KiB', Buffer.concat([SVG, Buffer.alloc(64 * 1024, ' ')])],
    ['an SVG that is cut off', SVG.subarray(0, -8)],
    ['an SVG in UTF-16', utf16],
    ['an SVG in no encoding', Buffer.concat([Buffer.from('<!-- \xff -->', 'latin1'), SVG])],
    ['an SVG without its namespace', Buffer.from('<svg width="1" height="1"/>')],
    ['HTML with an SVG in it', Buffer.from(`<html>${String(SVG).slice(SVG.indexOf('<svg'))}</html>`)],
    [
      'an entity that expands',
      Buffer.from('<!DOCTYPE svg [<!ENTITY a "b">]><svg xmlns="http://www.w3.org/2000/svg">&a;</svg>'),
    ],
  ])('given %s → refused', async (_what, content) => {
    await expect(brandLogo(content)).rejects.toBeInstanceOf(BrandLogoError);
  });
});
