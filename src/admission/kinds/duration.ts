// Converts Go duration strings (`15m`, `1h30m`, `1.5s`; metav1.Duration) to seconds and back.

const NANOSECONDS: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  // The micro sign and the Greek letter, as in Go.
  '\u00b5s': 1_000n,
  '\u03bcs': 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};
const PART = /([0-9]*)(?:\.([0-9]*))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)/y;
const MAX_NANOSECONDS = 2n ** 63n - 1n;
const MAX_LENGTH = 64;

/**
 * The seconds of a Go duration (`time.ParseDuration`), fractions included; undefined for a text that is no duration, is
 * negative, or is longer than Go can represent.
 */
export function parseDuration(text: string): number | undefined {
  if (text.length > MAX_LENGTH) return undefined;
  const unsigned = text.startsWith('+') ? text.slice(1) : text;
  if (unsigned === '0') return 0;
  if (unsigned === '') return undefined;
  let total = 0n;
  PART.lastIndex = 0;
  while (PART.lastIndex < unsigned.length) {
    const part = PART.exec(unsigned);
    if (part === null) return undefined;
    const [, whole = '', fraction = '', unit = ''] = part;
    const scale = NANOSECONDS[unit];
    if (scale === undefined || whole + fraction === '') return undefined;
    total += BigInt(whole || '0') * scale + (BigInt(fraction || '0') * scale) / 10n ** BigInt(fraction.length);
    if (total > MAX_NANOSECONDS) return undefined;
  }
  return Number(total) / 1e9;
}

/** Whole seconds in the largest unit that divides them: `1h`, `90m`, `2160h`, `10s`. */
export function formatDuration(seconds: number): string {
  if (seconds !== 0 && seconds % 3600 === 0) return `${seconds / 3600}h`;
  if (seconds !== 0 && seconds % 60 === 0) return `${seconds / 60}m`;
  return `${seconds}s`;
}
