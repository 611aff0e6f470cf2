// A histogram of durations that costs next to nothing at each request: whoever observes holds the series itself. That of
// prom-client makes a name of all labels and looks it up at every observation, which took 5 % of an introspection.

import type { Histogram, MetricValueWithName, Registry } from 'prom-client';

export interface DurationsOptions {
  readonly name: string;
  readonly help: string;
  /** Upper bounds in seconds, rising. */
  readonly buckets: readonly number[];
  /** What scrapes it. */
  readonly registry: Registry;
}

type Labels = Readonly<Record<string, string>>;

/** The durations of one kind, in series by their labels. */
export class Durations {
  readonly #options: DurationsOptions;
  readonly #series: DurationSeries[] = [];

  constructor(options: DurationsOptions) {
    this.#options = options;
    const { name } = options;
    // The registry asks a metric for its name and for `get()`, whatever it is.
    options.registry.registerMetric({ name, get: () => this.#read() } as unknown as Histogram);
  }

  /** A new series. Made once for the same labels and kept by the caller. */
  series(labels: Labels): DurationSeries {
    const series = new DurationSeries(labels, this.#options.buckets);
    this.#series.push(series);
    return series;
  }

  async #read() {
    const { name, help } = this.#options;
    return { name, help, type: 'histogram', values: this.#series.flatMap((series) => series.values(name)) };
  }
}

/** The durations that share their labels. */
export class DurationSeries {
  readonly #labels: Labels;
  readonly #buckets: readonly number[];
  /** By bucket, and behind them those above the last bound. */
  readonly #counts: number[];
  #sum = 0;

  constructor(labels: Labels, buckets: readonly number[]) {
    this.#labels = labels;
    this.#buckets = buckets;
    this.#counts = new Array<number>(buckets.length + 1).fill(0);
  }

  observe(seconds: number): void {
    let bucket = 0;
    while (seconds > (this.#buckets[bucket] ?? Number.POSITIVE_INFINITY)) bucket += 1;
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#sum += seconds;
  }

  /** As Prometheus reads it: buckets count all that is below their bound. */
  values(name: string): MetricValueWithName<string>[] {
    const labels = this.#labels;
    let count = 0;
    const buckets = this.#counts.map((inBucket, index) => {
      count += inBucket;
      const le = this.#buckets[index] ?? '+Inf';
      return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: count };
    });
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: this.#sum },
      { metricName: `${name}_count`, labels, value: count },
    ];
  }
}
