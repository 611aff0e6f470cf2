// The GRANTRY_BRAND_ variables: what pages show of their operators. `config.ts` reads them together with all others.

import { z } from 'zod';

/** The schema of each variable, with its description. */
export const BRAND_VARIABLES = {
  GRANTRY_BRAND_NAME: z
    .string()
    .regex(/^(?=.*\S)[^\p{C}\p{Zl}\p{Zp}]{1,60}$/u, 'is not a name of 1 to 60 characters without controls')
    .optional()
    .describe(
      'The name that pages show in their title, and at their top unless there is a logo. At most 60 characters. Unset: grantry.',
    ),
  GRANTRY_BRAND_LOGO_FILE: z
    .string()
    .min(1)
    .optional()
    .describe(
      'A file with the logo at the top of pages: SVG or PNG, at most 64 KiB. Read at the start. Unset: the name stands there.',
    ),
} as const;

/** What pages show of their operators. */
export interface BrandSettings {
  /** Undefined: that of grantry. */
  readonly name: string | undefined;
  readonly logoFile: string | undefined;
}

const shape = z.object(BRAND_VARIABLES);
type Values = Readonly<z.output<typeof shape>>;

/** The settings from the variables. */
export function brandSettings(values: Values): BrandSettings {
  return { name: values.GRANTRY_BRAND_NAME, logoFile: values.GRANTRY_BRAND_LOGO_FILE };
}
