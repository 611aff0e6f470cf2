// Whether what tests need and this machine lacks is fetched at its first use. `npm test` fetches nothing, unless with --all.

/** The variable that `npm test` sets for the programs that it starts. */
export const NO_FETCHING = { GRANTRY_TESTS_FETCH: 'no' };

export function mayFetch() {
  return process.env.GRANTRY_TESTS_FETCH !== NO_FETCHING.GRANTRY_TESTS_FETCH;
}

/** @throws where nothing may be fetched, with the way to have it */
export function requireFetching() {
  if (!mayFetch()) throw new Error('npm run test:setup fetches it');
}
