// Runs on the servers' core: the CPU time of one ID token by one algorithm, all threads together, and that of the event loop's, in
// microseconds. As many are made at the same time as there are connections under load.

import { randomBytes } from 'node:crypto';
import { json } from 'node:stream/consumers';
import { generateSigningKeyPem, importSigningKey, KeyRing } from '../src/oauth/registry/keys.ts';
import { IdTokens } from '../src/oauth/tokens/id-tokens.ts';
import type { SigningAlgorithm } from '../src/oauth/values/signature.ts';
import { CLIENT_ID, ISSUER, OPENID_SCOPES, PERSON } from './load/load-client.ts';

/** What is measured. */
export interface IdTokenOrder {
  readonly algorithm: SigningAlgorithm;
  readonly count: number;
}

export interface IdTokenCost {
  readonly cpu: number;
  readonly loop: number;
}

const AT_ONCE = 32;

const { algorithm, count } = (await json(process.stdin)) as IdTokenOrder;
const idTokens = new IdTokens({
  issuer: ISSUER,
  clock: { now: () => Date.now() },
  random: { bytes: randomBytes },
  endOfTick: setImmediate,
});
const ring = new KeyRing([await importSigningKey(await generateSigningKeyPem(algorithm, 2048), algorithm, 'Active')]);
const idTokenSettings = { signingAlgorithm: algorithm, lifetimeSeconds: 3600 };
const client = { clientId: CLIENT_ID, groups: ['*'], idTokens: idTokenSettings };
const content = {
  person: { subject: 'usr_person', username: 'person', groups: [], ...PERSON },
  scope: OPENID_SCOPES,
  login: {
    authTime: Date.now(),
    sid: randomBytes(32).toString('base64url'),
    nonce: randomBytes(16).toString('base64url'),
  },
  accessToken: randomBytes(400).toString('base64url'),
};

await costOf(count / 4);
process.stdout.write(JSON.stringify(await costOf(count)));

async function costOf(tokens: number): Promise<IdTokenCost> {
  const cpuBefore = process.cpuUsage();
  const loopBefore = process.threadCpuUsage();
  for (let made = 0; made < tokens; made += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, () => idTokens.prepare(client, ring).issue(content)));
  }
  const loop = process.threadCpuUsage(loopBefore);
  const cpu = process.cpuUsage(cpuBefore);
  const whole = AT_ONCE * Math.ceil(tokens / AT_ONCE);
  return { cpu: (cpu.user + cpu.system) / whole, loop: (loop.user + loop.system) / whole };
}
