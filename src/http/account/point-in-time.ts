// Points in time as pages show them. A page has no script that knows the zone of the reader, so they are in UTC and say it.

import type { Texts } from '../pages/texts.ts';

const DAYS = new Map<string, Intl.DateTimeFormat>();
const MINUTES = new Map<string, Intl.DateTimeFormat>();

/** The day. @param time epoch milliseconds */
export function dayIn({ language }: Pick<Texts, 'language'>, time: number): string {
  return formatter(DAYS, language, { dateStyle: 'long' }).format(time);
}

/** The day and the minute. @param time epoch milliseconds */
export function minuteIn({ language }: Pick<Texts, 'language'>, time: number): string {
  return `${formatter(MINUTES, language, { dateStyle: 'long', timeStyle: 'short' }).format(time)} UTC`;
}

/** Making one costs more than the rest of a page. */
function formatter(
  made: Map<string, Intl.DateTimeFormat>,
  language: string,
  style: Intl.DateTimeFormatOptions,
): Intl.DateTimeFormat {
  const known = made.get(language);
  if (known !== undefined) return known;
  const options: Intl.DateTimeFormatOptions = { timeZone: 'UTC' };
  const fresh = new Intl.DateTimeFormat(language, Object.assign(options, style));
  made.set(language, fresh);
  return fresh;
}
