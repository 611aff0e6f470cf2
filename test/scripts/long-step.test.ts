// What a script says about a step that takes long.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';

const LONG_STEP = JSON.stringify(new URL('../../scripts/long-step.mjs', import.meta.url).href);

/** What a process prints that takes this step, on a stderr that is no terminal. */
async function said(step: string): Promise<{ lines: readonly string[]; code: number | null }> {
  const source = `import { longStep } from ${LONG_STEP}; import { spawnSync } from 'node:child_process'; ${step}`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', source], {
    env: { ...process.env, GRANTRY_PROGRESS_EVERY: '50' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const [printed, [code]] = await Promise.all([text(child.stderr), once(child, 'close')]);
  return { lines: printed.trimEnd().split('\n'), code };
}

// A step that ends when three lines about it would be due; how many come before is the matter of the machine.
const OCCUPIED = "spawnSync(process.execPath, ['-e', 'setTimeout(() => {}, 1500)'])";

it.each([
  ['occupies the process', `longStep('building', 'a minute', () => { ${OCCUPIED}; })`],
  ['is awaited', `await longStep('building', 'a minute', async () => { ${OCCUPIED}; })`],
])('a step that %s → its name and usual time, how long it has taken so far, and its end', async (_, step) => {
  const { lines, code } = await said(step);
  expect(lines[0]).toBe('grantry: building; this takes a minute as a rule');
  expect(lines.slice(1, -1).length).toBeGreaterThan(0);
  for (const line of lines.slice(1, -1)) expect(line).toMatch(/^grantry: building: \d+ s so far$/);
  expect(lines.at(-1)).toMatch(/^grantry: building: ended after \d+ s$/);
  expect(code).toBe(0);
});

it.each([
  ['throws', "longStep('building', 'a minute', () => { throw new Error('no space'); })"],
  ['rejects', "await longStep('building', 'a minute', async () => { throw new Error('no space'); })"],
])('a step that %s → its end, then the error', async (_, step) => {
  const { lines, code } = await said(step);
  expect(lines[1]).toMatch(/^grantry: building: ended after \d+ s$/);
  expect(lines.join('\n')).toContain('no space');
  expect(code).toBe(1);
});

it('the result of a step → that of longStep', async () => {
  const { lines } = await said(
    "console.error('result', longStep('a', 'b', () => 7), await longStep('a', 'b', async () => 8))",
  );
  expect(lines.at(-1)).toBe('result 7 8');
});
