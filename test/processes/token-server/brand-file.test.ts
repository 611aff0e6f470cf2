// The brand of the configuration with its file: what is served of it, and what keeps a server from starting.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { accentedStylesheet } from '../../../src/http/pages/accent.ts';
import { OWN_BRAND } from '../../../src/http/pages/brand.ts';
import type { BrandSettings } from '../../../src/processes/config/brand-config.ts';
import { StartError } from '../../../src/processes/config/start-error.ts';
import { openBrand } from '../../../src/processes/token-server/brand-file.ts';
import { PNG } from '../../http/pages/logos.ts';

function fileWith(content: Buffer): string {
  const folder = mkdtempSync(join(tmpdir(), 'grantry-brand-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'logo');
  writeFileSync(file, content);
  return file;
}

/** As without a variable. */
const NONE: BrandSettings = {
  name: undefined,
  logoFile: undefined,
  accent: undefined,
  help: undefined,
  hasFooter: true,
};

it('given no variable → that of grantry', async () => {
  expect(await openBrand(NONE)).toEqual(OWN_BRAND);
});

it('given colours, help and no footer → in the brand', async () => {
  const accent = { light: '#0b57d0', dark: '#a8c7fa' };
  const help = { url: 'https://help.example.com/', text: 'Help' };
  const brand = await openBrand({ ...NONE, accent, help, hasFooter: false });
  expect(brand).toEqual({ ...OWN_BRAND, stylesheet: accentedStylesheet(accent), help, hasFooter: false });
});

it('given a file → its content, validated by it and not by its name', async () => {
  const brand = await openBrand({ ...NONE, name: 'Corp', logoFile: fileWith(PNG) });
  expect(brand).toMatchObject({ name: 'Corp', logo: { content: PNG, contentType: 'image/png' } });
});

it.each([
  ['no file', () => '/nonexistent/logo.svg'],
  ['a folder', () => tmpdir()],
  ['what is no logo', () => fileWith(Buffer.from('<html/>'))],
  ['a file without an end', () => '/dev/zero'],
])('given %s → a start error that names variable and file', async (_what, fileOf) => {
  const logoFile = fileOf();
  const error: unknown = await openBrand({ ...NONE, logoFile }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(StartError);
  expect(error).toMatchObject({ code: 2, message: expect.stringContaining(`GRANTRY_BRAND_LOGO_FILE: ${logoFile} `) });
});
