// The brand that pages show: name and logo of the operators, or those of grantry.

import type { PageAsset } from './page-assets.ts';

/** A brand. */
export interface Brand {
  readonly name: string;
  /** Undefined: there is none but the name. */
  readonly logo: PageAsset | undefined;
}

/** That of grantry; its logo is part of the layout. */
export const OWN_BRAND: Brand = { name: 'grantry', logo: undefined };
