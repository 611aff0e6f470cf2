// A histogram of durations with a cheap observation: the caller holds the series itself. The histogram of prom-client
// builds a key of all labels and looks it up at every observation, which took 5 % of an introspection.

import type { Histogram, MetricValueWithName, Registry } from 'prom-client';

export interface DurationsOptions {
  readonly name: string;
  readonly help: string;
  /** Upper bounds in seconds, rising. */
  readonly buckets: readonly number[];
  /** The registry that is scraped. */
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
    // The registry only uses `name` and `get()` of a metric.
    options.registry.registerMetric({ name, get: () => this.#read() } as unknown as Histogram);
  }

  /** A new series. The caller makes one for each set of labels and keeps it. */
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
  /** By bucket; the last one counts the durations above every bound. */
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

  /** As Prometheus reads it: a bucket counts every duration up to its bound. */
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
