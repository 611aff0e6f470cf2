// What becomes of the sessions, by who is signed in and what the client has proven.

import { expect, it } from 'vitest';
import { answerLogout } from '../../../src/oauth/endpoints/logout.ts';

const HINT = { subject: 'usr_alice', clientId: 'shop.web', sid: 'the-session' };

it.each([
  ['a hint of the person', HINT, 'usr_alice', 'end'],
  ['a hint of another person', HINT, 'usr_bob', 'ask'],
  ['no hint', undefined, 'usr_alice', 'ask'],
  ['a hint and no session', HINT, undefined, 'end_hinted'],
  ['neither', undefined, undefined, 'nothing'],
] as const)('given %s → as the table says', (_, hint, subject, answer) => {
  const session = subject === undefined ? undefined : { subject };
  expect(answerLogout({ hint, client: undefined, location: undefined }, session)).toBe(answer);
});
