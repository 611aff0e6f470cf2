// The brand of the configuration, with the logo read from its file once.

import { open } from 'node:fs/promises';
import { type Brand, OWN_BRAND } from '../../http/pages/brand.ts';
import { BrandLogoError, brandLogo, LARGEST_LOGO } from '../../http/pages/brand-logo.ts';
import type { BrandSettings } from '../config/brand-config.ts';
import { StartError } from '../config/start-error.ts';

/** The brand. @throws StartError for a file that cannot be read, or that is no logo */
export async function openBrand({ name = OWN_BRAND.name, logoFile }: BrandSettings): Promise<Brand> {
  return { name, logo: logoFile === undefined ? undefined : await logoIn(logoFile) };
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
