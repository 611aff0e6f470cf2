// The brand of the operators on pages, and the answer with their logo.

import { describe, expect, it } from 'vitest';
import { type Brand, OWN_BRAND } from '../../../src/http/pages/brand.ts';
import { brandLogo } from '../../../src/http/pages/brand-logo.ts';
import { type Grantry, startGrantry } from '../../grantry.ts';
import { PNG, SVG } from './logos.ts';

async function withBrand(brand: Brand | undefined, issuerPath = ''): Promise<Grantry> {
  return startGrantry({ clients: [], issuerPath, ...(brand && { brand }) });
}

/** The title and the header of a page. */
async function topOf(grantry: Grantry, path: string): Promise<{ title: string; header: string; icon: string }> {
  const response = await fetch(grantry.url(path), { headers: { accept: 'text/html' } });
  const page = await response.text();
  const part = (pattern: RegExp) => pattern.exec(page)?.[1] ?? '';
  return {
    title: part(/<title>(.*)<\/title>/),
    header: part(/<header>(.*?)<\/header>/s),
    icon: part(/<link rel="icon"[^>]* href="(.*)">/),
  };
}

describe('the brand of a page', () => {
  it('given none → the mark and the name of grantry', async () => {
    const { title, header, icon } = await topOf(await withBrand(undefined), '/account');
    expect(title).toBe('Sign in · grantry');
    expect(header).toMatch(/^<span class="wordmark"><svg .*<\/svg><span>grantry<\/span><\/span>$/s);
    expect(icon).toMatch(/^\/assets\/icon\./);
  });

  it.each(['/account', '/authorize', '/nowhere'])('given a name → it stands at %s, as text', async (path) => {
    const grantry = await withBrand({ name: 'Ämter & <Co>', logo: undefined });
    const { title, header } = await topOf(grantry, path);
    expect(title).toMatch(/ · Ämter &#38; &#60;Co&#62;$/);
    expect(header).toBe('<span class="wordmark"><bdi>Ämter &#38; &#60;Co&#62;</bdi></span>');
  });

  it.each([
    ['an SVG', SVG, 'image/svg+xml'],
    ['a PNG', PNG, 'image/png'],
  ])('given %s → pages show it, and it is served without any right', async (_what, content, type) => {
    const logo = await brandLogo(content);
    const grantry = await withBrand({ name: 'Corp', logo }, '/id');
    const { header, icon } = await topOf(grantry, '/account');
    expect(header).toBe(`<img class="logo" src="/id${logo.path}" alt="Corp">`);
    expect(icon).toBe(`/id${logo.path}`);
    const response = await fetch(grantry.url(logo.path));
    expect(Buffer.from(await response.arrayBuffer())).toEqual(content);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': type,
      'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
      'x-content-type-options': 'nosniff',
      'cache-control': 'public, max-age=31536000, immutable',
    });
  });

  it('given a logo alone → the name of grantry is its text', async () => {
    const { title, header } = await topOf(
      await withBrand({ name: OWN_BRAND.name, logo: await brandLogo(PNG) }),
      '/account',
    );
    expect([title, header]).toEqual(['Sign in · grantry', expect.stringContaining('alt="grantry"')]);
  });
});
