// The brand of the configuration, with the logo read from its file once.

import { open } from 'node:fs/promises';
import { accentedStylesheet } from '../../http/pages/accent.ts';
import { type Brand, BrandLogoError, brandLogo, LARGEST_LOGO, OWN_BRAND } from '../../http/pages/brand.ts';
import type { BrandSettings } from '../config/brand-config.ts';
import { StartError } from '../config/start-error.ts';

/** The brand. @throws StartError for a file that cannot be read, or that is no logo */
export async function openBrand(settings: BrandSettings): Promise<Brand> {
  const { name = OWN_BRAND.name, logoFile, accent, help, hasFooter } = settings;
  return {
    name,
    logo: logoFile === undefined ? undefined : await logoIn(logoFile),
    stylesheet: accent === undefined ? OWN_BRAND.stylesheet : accentedStylesheet(accent),
    help,
    hasFooter,
  };
}

async function logoIn(file: string): ReturnType<typeof brandLogo> {
  try {
    return await brandLogo(await firstBytesOf(file));
  } catch (error) {
    const fault =
      error instanceof BrandLogoError ? error.message : `cannot be read (${(error as NodeJS.ErrnoException).code})`;
    throw new StartError(`GRANTRY_BRAND_LOGO_FILE: ${file} ${fault}`, 2);
  }
}

/** All of a logo, and of anything larger one byte more than a logo may have. */
async function firstBytesOf(path: string): Promise<Buffer> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(LARGEST_LOGO + 1), 0, LARGEST_LOGO + 1, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}
