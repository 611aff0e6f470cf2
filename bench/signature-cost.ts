// Runs on the servers' core: the CPU time of one ES256 signature with a key object made once, in microseconds.

import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';

const ROUND = 5000;

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
// As long as the signing input of an access token.
const input = randomBytes(500);

function round(): number {
  const before = process.cpuUsage();
  for (let count = 0; count < ROUND; count += 1) sign('sha256', input, privateKey);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / ROUND;
}

round();
process.stdout.write(JSON.stringify(round()));
