// The GRANTRY_BRAND_ variables: what pages show of their operators. `config.ts` reads them together with all others.

import { z } from 'zod';
import { type Accent, accentFault } from '../../http/pages/accent.ts';
import type { Brand } from '../../http/pages/brand.ts';

const text = (most: number, what: string) =>
  z
    .string()
    .regex(
      new RegExp(`^(?=.*\\S)[^\\p{C}\\p{Zl}\\p{Zp}]{1,${most}}$`, 'u'),
      `is not ${what} of 1 to ${most} characters without controls`,
    )
    .optional();

const color = (scheme: keyof Accent) =>
  z
    .string()
    .regex(/^#[0-9a-f]{6}$/i, { error: 'is not a colour as #rrggbb, such as #0f5f5c', abort: true })
    .superRefine((value, context) => {
      const message = accentFault(value, scheme);
      if (message) context.addIssue({ code: 'custom', message });
    })
    .optional();

const helpAddress = z
  .string()
  .max(1000, 'has more than 1000 characters')
  .transform((value, context) => {
    const url = URL.parse(value);
    if (url !== null && /^(https:|mailto:.)/.test(url.href) && url.username + url.password === '') return url.href;
    context.addIssue({ code: 'custom', message: 'is not an https or mailto address without a user name and password' });
    return z.NEVER;
  })
  .optional();

/** The schema of each variable, with its description. */
export const BRAND_VARIABLES = {
  GRANTRY_BRAND_NAME: text(60, 'a name').describe(
    'The name that pages show in their title, and at their top unless there is a logo. At most 60 characters. Unset: grantry.',
  ),
  GRANTRY_BRAND_LOGO_FILE: z
    .string()
    .min(1)
    .optional()
    .describe(
      'A file with the logo at the top of pages: SVG or PNG, at most 64 KiB. Read at the start. Unset: the name stands there.',
    ),
  GRANTRY_BRAND_ACCENT_COLOR: color('light').describe(
    'The colour of links, buttons and focus rings in browsers that are set to light, as `#rrggbb`; with `GRANTRY_BRAND_ACCENT_COLOR_DARK`. Refused at the start where its contrast with any colour beside it is below 4.5:1 (WCAG 2.2 AA). Unset: that of grantry.',
  ),
  GRANTRY_BRAND_ACCENT_COLOR_DARK: color('dark').describe('The same for browsers that are set to dark.'),
  GRANTRY_BRAND_HELP_URL: helpAddress.describe(
    'Where the link for help on the login page leads: an https or mailto address, at most 1000 characters; with `GRANTRY_BRAND_HELP_TEXT`. Unset: there is no link.',
  ),
  GRANTRY_BRAND_HELP_TEXT: text(100, 'a text').describe('The text of that link. At most 100 characters.'),
  GRANTRY_BRAND_FOOTER: z
    .enum(['on', 'off'], 'is neither on nor off')
    .prefault('on')
    .describe('`off` removes the line at the end of pages that names grantry.'),
} as const;

/** What pages show of their operators. */
export interface BrandSettings extends Pick<Brand, 'help' | 'hasFooter'> {
  /** Undefined: that of grantry. */
  readonly name: string | undefined;
  readonly logoFile: string | undefined;
  /** Undefined: that of grantry. */
  readonly accent: Accent | undefined;
}

const shape = z.object(BRAND_VARIABLES);
type Values = Readonly<z.output<typeof shape>>;

/** The settings from variables without a fault. */
export function brandSettings(values: Values): BrandSettings {
  const {
    GRANTRY_BRAND_ACCENT_COLOR: light,
    GRANTRY_BRAND_ACCENT_COLOR_DARK: dark,
    GRANTRY_BRAND_HELP_URL: url,
    GRANTRY_BRAND_HELP_TEXT: helpText,
  } = values;
  return {
    name: values.GRANTRY_BRAND_NAME,
    logoFile: values.GRANTRY_BRAND_LOGO_FILE,
    accent: light === undefined || dark === undefined ? undefined : { light, dark },
    help: url === undefined || helpText === undefined ? undefined : { url, text: helpText },
    hasFooter: values.GRANTRY_BRAND_FOOTER === 'on',
  };
}

/** Faults in the combination of variables. @param isSet whether a variable has a text */
export function brandFaults(isSet: (name: keyof typeof BRAND_VARIABLES) => boolean): readonly string[] {
  const faults: string[] = [];
  if (isSet('GRANTRY_BRAND_ACCENT_COLOR') !== isSet('GRANTRY_BRAND_ACCENT_COLOR_DARK')) {
    faults.push(
      'GRANTRY_BRAND_ACCENT_COLOR and GRANTRY_BRAND_ACCENT_COLOR_DARK need each other: no colour has the contrast in both schemes',
    );
  }
  if (isSet('GRANTRY_BRAND_HELP_URL') !== isSet('GRANTRY_BRAND_HELP_TEXT'))
    faults.push('GRANTRY_BRAND_HELP_URL and GRANTRY_BRAND_HELP_TEXT need each other');
  return faults;
}
