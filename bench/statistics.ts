// Medians and quartiles of a few measurements.

/** A figure over all rounds of a run. */
export interface Summary {
  readonly median: number;
  readonly lowerQuartile: number;
  readonly upperQuartile: number;
}

/** @param values at least one */
export function summarize(values: readonly number[]): Summary {
  return {
    median: quantile(values, 0.5),
    lowerQuartile: quantile(values, 0.25),
    upperQuartile: quantile(values, 0.75),
  };
}

/** Interpolates between the two nearest values. */
export function quantile(values: readonly number[], fraction: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const position = fraction * (sorted.length - 1);
  const below = sorted[Math.floor(position)];
  const above = sorted[Math.ceil(position)];
  if (below === undefined || above === undefined) throw new TypeError('nothing was measured');
  return below + (above - below) * (position - Math.floor(position));
}
