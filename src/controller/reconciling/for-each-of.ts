// Work on several objects in one reconcile: an object that the API server refuses holds up none of the others.

/** Runs `work` for each, one after the other. @throws the first error, once all have been tried: requeue */
export async function forEachOf<Item>(items: Iterable<Item>, work: (item: Item) => Promise<void>): Promise<void> {
  const errors: unknown[] = [];
  for (const item of items) await work(item).catch((error) => errors.push(error));
  if (errors.length > 0) throw errors[0];
}
