// What a leader has of the API server, over calls that a test plays or watches.

import { LeaderApi, type LeaderApiOptions } from '../../src/controller/leadership/leader-api.ts';

type Calls = LeaderApiOptions['api'];

const unplayed = () => Promise.reject(new Error('the test does not play this call'));
/** To be spread where a test plays only some of them. */
export const UNPLAYED: Calls = {
  get: unplayed,
  create: unplayed,
  apply: unplayed,
  merge: unplayed,
  delete: unplayed,
};

/** That of a leader who keeps its lease unless the test says otherwise. */
export function leaderOver(api: Calls, assertHeld: () => void = () => {}): LeaderApi {
  return new LeaderApi({ api, leadership: { assertHeld }, rights: { recordResult: () => {} } });
}
