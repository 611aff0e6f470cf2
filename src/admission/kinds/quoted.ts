// A value from a manifest as it may stand in a message.

const QUOTED_LENGTH = 120;

/** The value in quotes, escaped, cut to a bearable length. */
export function quoted(value: string): string {
  const points = [...value.slice(0, QUOTED_LENGTH * 2)];
  return JSON.stringify(points.length > QUOTED_LENGTH ? `${points.slice(0, QUOTED_LENGTH).join('')}…` : value);
}
