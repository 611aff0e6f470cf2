// The brand of the operators on pages, and the answers with their logo and their colours.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { accentedStylesheet } from '../../../src/http/pages/accent.ts';
import { type Brand, brandLogo, OWN_BRAND } from '../../../src/http/pages/brand.ts';
import { type Grantry, startGrantry } from '../../grantry.ts';
import { PNG, SVG } from './logos.ts';

async function withBrand(brand: Partial<Brand> | undefined, issuerPath = ''): Promise<Grantry> {
  return startGrantry({ clients: [], issuerPath, ...(brand && { brand }) });
}

async function pageAt(grantry: Grantry, path: string): Promise<string> {
  return (await fetch(grantry.url(path), { headers: { accept: 'text/html' } })).text();
}

/** The title and the header of a page. */
async function topOf(grantry: Grantry, path: string): Promise<{ title: string; header: string; icon: string }> {
  const page = await pageAt(grantry, path);
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

  it('given none → the style sheet as it is in the sources, no link for help, and the footer', async () => {
    const grantry = await withBrand(undefined);
    const content = readFileSync(new URL('../../../src/http/pages/style.css', import.meta.url));
    const path = `/assets/style.${createHash('sha256').update(content).digest('hex').slice(0, 16)}.css`;
    for (const page of [await pageAt(grantry, '/account'), await pageAt(grantry, '/nowhere')]) {
      expect(page).toContain(`<link rel="stylesheet" href="${path}">`);
      expect(page).toContain('<footer>Authorization by grantry</footer>');
      expect(page).not.toContain('<a ');
    }
    expect(Buffer.from(await (await fetch(grantry.url(path))).arrayBuffer())).toEqual(content);
  });

  it.each(['/account', '/authorize', '/nowhere'])(
    'given accent colours → %s links to a style sheet with them, and no page to another',
    async (path) => {
      const stylesheet = accentedStylesheet({ light: '#0b57d0', dark: '#a8c7fa' });
      const grantry = await withBrand({ stylesheet }, '/id');
      const page = await pageAt(grantry, path);
      expect(page.match(/<link rel="stylesheet" .*>/g)).toEqual([
        `<link rel="stylesheet" href="/id${stylesheet.path}">`,
      ]);
      expect(page).not.toMatch(/<style|style=/);
      const response = await fetch(grantry.url(stylesheet.path));
      expect([response.status, response.headers.get('cache-control'), await response.text()]).toEqual([
        200,
        'public, max-age=31536000, immutable',
        stylesheet.content,
      ]);
      expect((await fetch(grantry.url(OWN_BRAND.stylesheet.path))).status).toBe(404);
    },
  );

  it.each([
    ['https://help.example.com/?a=1&b=2', ' target="_blank"'],
    ['mailto:help@example.com', ''],
  ])('given help at %s → a link on the login page alone, as text, without a referrer', async (url, target) => {
    const grantry = await withBrand({ help: { url, text: 'Help & <more>' } });
    const href = url.replace('&', '&#38;');
    const link = `<a href="${href}"${target} rel="noopener noreferrer"><bdi>Help &#38; &#60;more&#62;</bdi></a>`;
    expect((await pageAt(grantry, '/account')).match(/<a .*<\/a>/g)).toEqual([link]);
    expect(await pageAt(grantry, '/nowhere')).not.toContain('<a ');
  });

  it.each(['/account', '/authorize', '/nowhere'])('given no footer → none at %s', async (path) => {
    const page = await pageAt(await withBrand({ hasFooter: false }), path);
    expect(page).not.toContain('footer');
    expect(page).not.toContain('Authorization by');
  });
});
