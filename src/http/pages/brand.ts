// The brand that pages show: that of the operators, or that of grantry. A logo is validated by its content: what browsers could
// not show is found when the server starts.

import { type PageAsset, pageAsset, STYLESHEET } from './page-assets.ts';

/** A brand. */
export interface Brand {
  readonly name: string;
  /** Undefined: there is none but the name. */
  readonly logo: PageAsset | undefined;
  /** With the accent colours. */
  readonly stylesheet: PageAsset;
  /** A link of the login page. The address is https or mailto. */
  readonly help: { readonly url: string; readonly text: string } | undefined;
  readonly hasFooter: boolean;
}

/** That of grantry; its logo is part of the layout. */
export const OWN_BRAND: Brand = {
  name: 'grantry',
  logo: undefined,
  stylesheet: STYLESHEET,
  help: undefined,
  hasFooter: true,
};

/** The most bytes of a logo: every page loads it. */
export const LARGEST_LOGO = 64 * 1024;

/** A file that is no logo; the message says why, as the end of a sentence about the file. */
export class BrandLogoError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'BrandLogoError';
  }
}

const PNG_BEGIN = Buffer.from('\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'latin1');
const PNG_END = Buffer.from('\0\0\0\0IEND\xaeB`\x82', 'latin1');
const SVG_NAMESPACE = 'http://www.w3.org/2000/svg';

/** The logo in a file: an SVG or a PNG. @throws BrandLogoError */
export async function brandLogo(content: Buffer): Promise<PageAsset> {
  if (content.length > LARGEST_LOGO) throw new BrandLogoError(`has more than ${LARGEST_LOGO} bytes`);
  if (content.subarray(0, 4).equals(PNG_BEGIN.subarray(0, 4))) {
    if (!content.subarray(0, PNG_BEGIN.length).equals(PNG_BEGIN) || !content.includes(PNG_END))
      throw new BrandLogoError('is a PNG that is damaged or cut off');
    return pageAsset('logo.png', 'image/png', content);
  }
  await requireSvg(content);
  return pageAsset('logo.svg', 'image/svg+xml', content);
}

/** Without its namespace browsers take an SVG for some other XML, and show none. */
async function requireSvg(content: Buffer): Promise<void> {
  // Imported only where there is a logo.
  const { parseXml } = await import('@rgrove/parse-xml');
  let root: ReturnType<typeof parseXml>['root'];
  try {
    ({ root } = parseXml(new TextDecoder('utf-8', { fatal: true }).decode(content)));
  } catch (error) {
    const [firstLine] = error instanceof Error ? error.message.split('\n') : [];
    throw new BrandLogoError(`is neither a PNG nor an SVG in UTF-8 (${firstLine})`);
  }
  const { xmlns } = root?.attributes ?? {};
  if (root?.name !== 'svg' || xmlns !== SVG_NAMESPACE)
    throw new BrandLogoError(`is XML, but its first element is no svg with xmlns="${SVG_NAMESPACE}"`);
}
