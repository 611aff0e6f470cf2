// Runs on the load's core: makes codes of grantry as it does itself once a person has agreed, and prints them as JSON.

import { json } from 'node:stream/consumers';
import { openGrantryState } from './grantry-state.ts';
import type { CodeOrder } from './load/load-client.ts';

const { redisUrl, count, agreement, provider } = (await json(process.stdin)) as CodeOrder;
const state = await openGrantryState(redisUrl);
const given = await state.give(count, agreement, provider);
await state.close();
process.stdout.write(JSON.stringify(given.map(({ code }) => code)));
