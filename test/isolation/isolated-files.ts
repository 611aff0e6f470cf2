// Which test files have a process of their own. The files of `fast` and those of `servers` share their workers, and the modules
// that these have loaded; a file that changes what others see runs by itself.

import { globSync, readFileSync } from 'node:fs';

/**
 * What a file changes for those that run after it in one process: modules, the clock, globals, the environment, the
 * directory, listeners of the process. One that measures the heap finds there what others left.
 */
const CHANGES_THE_PROCESS = [
  /\bvi\.(?:do)?[mM]ock\(/,
  /\bvi\.(?:useFakeTimers|stubGlobal|stubEnv|resetModules)\(/,
  /\bvi\.spyOn\((?:process|globalThis|console|crypto|performance|[A-Z]\w*)\b/,
  /\bprocess\.env(?:\.\w+|\[[^\]]+\])\s*=[^=]|\bdelete process\.env\b/,
  /\bprocess\.(?:on|once|chdir|umask|removeAllListeners)\(/,
  /\b(?:memoryUsage|getHeapStatistics|cpuUsage)\(/,
];

/** The files of the patterns that need a process of their own, as paths from `root`. */
export function isolatedFiles(patterns: readonly string[], root: string): string[] {
  return globSync([...patterns], { cwd: root })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => changesTheProcess(readFileSync(`${root}/${file}`, 'utf8')))
    .sort();
}

/** Whether a test file with this text needs a process of its own. */
function changesTheProcess(text: string): boolean {
  return CHANGES_THE_PROCESS.some((change) => change.test(text));
}
