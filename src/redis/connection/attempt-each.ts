// Runs many actions of which some may fail: one unavailable primary of a Cluster must not prevent the actions on the
// others.

/** The outcomes of many actions. */
export interface Attempts<Item, Value> {
  /** The results of the actions that succeeded, in the order of the items. */
  readonly values: readonly Value[];
  readonly failed: readonly { readonly item: Item; readonly error: unknown }[];
}

/** Runs `work` on every item, in batches of `atOnce`, and never throws. */
export async function attemptEach<Item, Value>(
  items: readonly Item[],
  atOnce: number,
  work: (item: Item) => Promise<Value>,
): Promise<Attempts<Item, Value>> {
  const values: Value[] = [];
  const failed: { item: Item; error: unknown }[] = [];
  for (let from = 0; from < items.length; from += atOnce) {
    const batch = items.slice(from, from + atOnce);
    const outcomes = await Promise.allSettled(batch.map(work));
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.status === 'fulfilled') values.push(outcome.value);
      else failed.push({ item: batch[index] as Item, error: outcome.reason });
    }
  }
  return { values, failed };
}
