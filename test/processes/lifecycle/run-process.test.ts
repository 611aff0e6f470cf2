import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { StateError } from '../../../src/local-state/state-error.ts';
import { ConfigurationError } from '../../../src/processes/config/config.ts';
import { StartError } from '../../../src/processes/config/start-error.ts';
import { runProcess } from '../../../src/processes/lifecycle/run-process.ts';

async function ended(run: () => Promise<number>) {
  const stderr = new PassThrough({ encoding: 'utf8' });
  const code = await runProcess({ command: 'grantry server', stderr }, run);
  return { code, lines: stderr.read() };
}

const failing = (error: Error) => () => Promise.reject(error);

test('a command that ends by itself → its own code, and no line', async () => {
  expect(await ended(async () => 1)).toEqual({ code: 1, lines: null });
});

test('an invalid configuration → a line for each fault, code 2', async () => {
  const faults = ['GRANTRY_PORT is not a port', 'GRANTRY_HOST is empty'];
  expect(await ended(failing(new ConfigurationError(faults)))).toEqual({
    code: 2,
    lines: 'grantry server: GRANTRY_PORT is not a port\ngrantry server: GRANTRY_HOST is empty\n',
  });
});

test.each([1, 2] as const)('a failed start with code %d → its sentence and its code', async (code) => {
  const lines = 'grantry server: the port is in use\n';
  expect(await ended(failing(new StartError('the port is in use', code)))).toEqual({ code, lines });
});

test('an unusable `.grantry/` → its sentence, code 1', async () => {
  const lines = 'grantry server: .grantry/keys is a link\n';
  expect(await ended(failing(new StateError('.grantry/keys', 'is a link')))).toEqual({ code: 1, lines });
});

test('every other error is thrown on, with no line', async () => {
  const stderr = new PassThrough({ encoding: 'utf8' });
  const fault = new TypeError('a fault of the program');
  await expect(runProcess({ command: 'grantry dev', stderr }, failing(fault))).rejects.toBe(fault);
  expect(stderr.read()).toBeNull();
});
