// The lines about a step that takes long, such as an installation or a build: what it is and how long it takes as a rule, and
// while it runs a line every 30 seconds. Runs on Node 20 and without node_modules.

import { spawn } from 'node:child_process';

/** Milliseconds; tests set a shorter time. */
const EVERY = Number(process.env.GRANTRY_PROGRESS_EVERY ?? 30_000);

// A process of its own, because most steps occupy this one until they end. It ends with this one, whatever ends that.
const TICKER = `
  const [what, every, parent] = process.argv.slice(1);
  const started = Date.now();
  setInterval(() => {
    if (process.ppid !== Number(parent)) process.exit();
    console.error('grantry: ' + what + ': ' + Math.round((Date.now() - started) / 1000) + ' s so far');
  }, Number(every));
`;

/**
 * Runs a step, synchronous or not. All lines go to stderr. On a terminal the program that the step runs shows its own progress.
 * @param what names the step, such as `installing packages with npm`
 * @param usual how long it takes as a rule, such as `about a minute`
 */
export function longStep(what, usual, step) {
  console.error(`grantry: ${what}; this takes ${usual} as a rule`);
  const started = Date.now();
  const arguments_ = ['--input-type=commonjs', '--eval', TICKER, what, String(EVERY), String(process.pid)];
  const ticker = process.stderr.isTTY
    ? undefined
    : spawn(process.execPath, arguments_, { stdio: ['ignore', 'ignore', 'inherit'] });
  // The end of this process does not wait for it.
  ticker?.unref();
  const end = () => {
    ticker?.kill();
    console.error(`grantry: ${what}: ended after ${Math.round((Date.now() - started) / 1000)} s`);
  };
  let result;
  try {
    result = step();
  } catch (error) {
    end();
    throw error;
  }
  if (!(result instanceof Promise)) end();
  return result instanceof Promise ? result.finally(end) : result;
}
