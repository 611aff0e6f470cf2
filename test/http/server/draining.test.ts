// A token server that is terminated: connections that clients keep are given up before it closes, so that none of them is
// cut off under a request that is on its way.

import { Agent, get } from 'node:http';
import { expect, it } from 'vitest';
import { startGrantry } from '../../grantry.ts';

/** The status and the Connection header of one answer. */
async function ask(url: string, agent: Agent): Promise<readonly [number | undefined, string | undefined]> {
  return await new Promise((resolve, reject) => {
    get(url, { agent }, (response) => {
      response.resume().on('end', () => resolve([response.statusCode, response.headers.connection]));
    }).on('error', reject);
  });
}

it('while it drains, each answer is served and is the last of its connection', async () => {
  const grantry = await startGrantry({ clients: [] });
  const agent = new Agent({ keepAlive: true });
  const url = grantry.url('/.well-known/jwks.json');
  expect(await ask(url, agent)).toEqual([200, 'keep-alive']);
  grantry.server.draining.begin();
  expect(await ask(url, agent)).toEqual([200, 'close']);
  expect(await ask(url, agent)).toEqual([200, 'close']);
  agent.destroy();
});
