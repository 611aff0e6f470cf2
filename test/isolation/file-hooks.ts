// What helpers of tests do after each test and after each file. The files of one process share the module of a helper, so a
// hook of vitest that the module registers as it loads runs for the first of them alone. `set-up.ts` runs these for each file.

type Hook = () => Promise<void> | void;

const afterTest: Hook[] = [];
const afterFile: Hook[] = [];
let isRunning = false;

/** Runs `hook` after each test of each file; for the top level of a helper. */
export function afterEachTest(hook: Hook): void {
  afterTest.push(hook);
}

/** Runs `hook` after the tests of each file; for the top level of a helper. */
export function afterEachFile(hook: Hook): void {
  afterFile.push(hook);
}

/** @throws Error outside a file that runs these hooks: what the caller starts would not be inspected, and would not end */
export function requireFileHooks(): void {
  if (!isRunning) throw new Error('no hooks run for this file: its project needs the set-up test/isolation/set-up.ts');
}

/** For `set-up.ts`. */
export const fileHooks = {
  begin(): void {
    isRunning = true;
  },
  async testEnded(): Promise<void> {
    for (const hook of afterTest) await hook();
  },
  async fileEnded(): Promise<void> {
    isRunning = false;
    for (const hook of afterFile) await hook();
  },
};
