// A new version is rolled out and rolled back while programs ask for tokens at 200 requests/s; and what that costs the pods.
// For a while the replicas of both versions answer, over the same Redis and the same objects. The version before is the image
// in GRANTRY_E2E_PREVIOUS_IMAGE (scripts/e2e.mjs builds that of the last release); without it both are the same image, which
// proves the roll-out and nothing about versions, and the names of the tests say so.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { figure } from './setup/diagnosis.ts';
import { deleteNamespaces } from './setup/kubectl.ts';
import { IMAGE } from './setup/pods.ts';
import { imageValues } from './setup/release.ts';
import { sharedInstall } from './setup/shared-install.ts';
import { createMachineClient, type MachineClient } from './setup/tenants.ts';
import { Traffic } from './setup/traffic.ts';
import { usageOf } from './setup/usage.ts';

const TENANT = 'e2e-upgrade';
const REQUESTS_PER_SECOND = 200;
const PREVIOUS_IMAGE = process.env.GRANTRY_E2E_PREVIOUS_IMAGE ?? IMAGE;
const VERSIONS =
  PREVIOUS_IMAGE === IMAGE ? 'one image, for there is no release before it' : `${PREVIOUS_IMAGE} and ${IMAGE}`;

let client: MachineClient;

beforeAll(async () => {
  client = await createMachineClient(TENANT);
});

afterAll(() => deleteNamespaces(TENANT));

/** Requests that fail while something is done; the figure that a person should see. */
async function failuresDuring(what: string, change: () => Promise<void>): Promise<readonly string[]> {
  const { tokenUrl } = sharedInstall;
  const traffic = await Traffic.start({ ...client, tokenUrl, requestsPerSecond: REQUESTS_PER_SECOND });
  const began = performance.now();
  await change();
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  // The pods of before may still be on their way out.
  await sharedInstall.settled('server');
  await traffic.goesOn(REQUESTS_PER_SECOND);
  const { failures, failed, answered, slowestMilliseconds } = await traffic.stop();
  const slowest = Math.round(slowestMilliseconds);
  figure(
    `${what} (${seconds} s) under ${REQUESTS_PER_SECOND} requests/s: ${failed} of ${answered} requests failed, slowest ${slowest} ms`,
  );
  return failures;
}

/** Pods differ where the image does not. */
function version(image: string, revision: string) {
  const podAnnotations = { 'example.com/revision': revision };
  return { image: imageValues(image), server: { podAnnotations }, controller: { podAnnotations } };
}

it(`a rolling update fails no request (${VERSIONS})`, async () => {
  await sharedInstall.upgrade(version(PREVIOUS_IMAGE, 'before'));
  const failures = await failuresDuring(`rolling update, ${VERSIONS}`, () =>
    sharedInstall.upgrade(version(IMAGE, 'after')),
  );
  expect(failures).toEqual([]);
});

it(`a rollback fails no request (${VERSIONS})`, async () => {
  expect(await failuresDuring(`rollback, ${VERSIONS}`, () => sharedInstall.rollback())).toEqual([]);
  if (PREVIOUS_IMAGE !== IMAGE) await sharedInstall.upgrade(version(IMAGE, 'after'));
});

it('pods use no more memory than they may', async () => {
  const { tokenUrl } = sharedInstall;
  const traffic = await Traffic.start({ ...client, tokenUrl, requestsPerSecond: REQUESTS_PER_SECOND });
  // Longer than the kubelet measures for one value.
  await traffic.goesOn(15 * REQUESTS_PER_SECOND);
  for (const part of ['server', 'controller', 'redis'] as const) {
    const usages = await usageOf(await sharedInstall.pods(part));
    expect(usages).not.toEqual([]);
    for (const { pod, cpu, memory, requestedCpu, requestedMemory, memoryLimit } of usages) {
      const asked = `asked for ${requestedCpu} and ${requestedMemory}, memory limit ${memoryLimit}`;
      figure(`${pod} at ${REQUESTS_PER_SECOND} requests/s: ${cpu}m CPU, ${memory}Mi (${asked})`);
      expect([pod, memory < Number.parseInt(memoryLimit, 10)]).toEqual([pod, true]);
    }
  }
  expect((await traffic.stop()).failures).toEqual([]);
});
