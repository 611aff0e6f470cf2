// The languages that an authorization request asks for (`ui_locales`, OpenID Connect Core §3.1.2.1), with or without OpenID
// Connect.

import type { Parameters } from '../values/parameters.ts';

/** A language tag by its form (BCP 47 §2.1), without tags that are private as a whole. */
const TAG = /^[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*$/;
/** BCP 47 §4.4.1: every tag without extensions fits. */
const LONGEST_TAG = 35;
const MOST_TAGS = 16;

/**
 * The tags, the preferred one first: those that are well-formed, each once, the first 16. Others cause no error (Core
 * §3.1.2.1). Undefined where none is left.
 */
export function readUiLocales(parameters: Parameters): readonly string[] | undefined {
  const value = parameters.get('ui_locales');
  if (value === undefined) return undefined;
  const tags = value.split(' ').filter((tag) => tag.length <= LONGEST_TAG && TAG.test(tag));
  const first = [...new Set(tags)].slice(0, MOST_TAGS);
  return first.length > 0 ? first : undefined;
}
