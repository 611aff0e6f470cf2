// Quotes a value from a manifest for a message.

const QUOTED_LENGTH = 120;

/** The value in quotes, escaped, cut to a limited length. */
export function quoted(value: string): string {
  const points = [...value.slice(0, QUOTED_LENGTH * 2)];
  return JSON.stringify(points.length > QUOTED_LENGTH ? `${points.slice(0, QUOTED_LENGTH).join('')}…` : value);
}
