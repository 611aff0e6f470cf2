// The family of a browser by its `User-Agent` (RFC 9110 §10.1.5), for people to recognize their sessions by. Browsers claim to
// be others, so the order decides; the answer is always one of these names.

/** By what stands in the header. A browser that builds on another one names both, so it comes first. */
const FAMILIES: readonly (readonly [name: string, pattern: RegExp])[] = [
  ['Edge', /\bEdg(?:e|A|iOS)?\//],
  ['Opera', /\bOPR\//],
  ['Samsung Internet', /\bSamsungBrowser\//],
  ['Firefox', /\b(?:Firefox|FxiOS)\//],
  ['Chrome', /\b(?:Chrome|Chromium|HeadlessChrome|CriOS)\//],
  ['Safari', /\bVersion\/\S+ .*\bSafari\//],
];

/** The most characters of the header that are read. */
const LONGEST_HEADER = 500;

/** The family; undefined for any other browser. */
export function browserFamily({
  'user-agent': agent = '',
}: {
  readonly 'user-agent'?: string | undefined;
}): string | undefined {
  const read = agent.slice(0, LONGEST_HEADER);
  return FAMILIES.find(([, pattern]) => pattern.test(read))?.[0];
}
