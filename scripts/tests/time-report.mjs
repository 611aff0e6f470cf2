// A reporter of vitest: where the time of a run went, by project and for the slowest files.

const SLOWEST = 30;

/**
 * Prints both tables when a run has ended.
 * @param print takes one line; the console's by default
 */
export default class TimeReport {
  #started = new Map();
  #ended = new Map();
  #print;

  constructor({ print = console.log } = {}) {
    this.#print = print;
  }

  onTestModuleQueued({ moduleId }) {
    this.#started.set(moduleId, performance.now());
  }

  onTestModuleEnd({ moduleId }) {
    this.#ended.set(moduleId, performance.now());
  }

  onTestRunEnd(modules) {
    const files = modules.map((module) => ({
      name: module.relativeModuleId,
      project: module.project.name,
      milliseconds: milliseconds(module.diagnostic()),
      started: this.#started.get(module.moduleId),
      ended: this.#ended.get(module.moduleId),
    }));
    this.#print('\nSeconds by project, of all its files and from its first start to its last end:');
    for (const [project, own] of byProject(files)) {
      const elapsed = Math.max(...own.map(({ ended }) => ended)) - Math.min(...own.map(({ started }) => started));
      this.#print(
        `  ${project}: ${seconds(sum(own))} in ${own.length} file${own.length === 1 ? '' : 's'}, ${seconds(elapsed)} elapsed`,
      );
    }
    this.#print(`Seconds of the ${Math.min(SLOWEST, files.length)} slowest files:`);
    const slowest = files.toSorted((a, b) => b.milliseconds - a.milliseconds).slice(0, SLOWEST);
    for (const file of slowest) this.#print(`  ${seconds(file.milliseconds)} ${file.name}`);
  }
}

/** Of one file: the start of its environment, its imports, its hooks and its tests. */
function milliseconds({ environmentSetupDuration, prepareDuration, collectDuration, setupDuration, duration }) {
  return environmentSetupDuration + prepareDuration + collectDuration + setupDuration + duration;
}

/** The slowest project first. */
function byProject(files) {
  const projects = Map.groupBy(files, ({ project }) => project);
  return [...projects].sort(([, a], [, b]) => sum(b) - sum(a));
}

function sum(files) {
  return files.reduce((total, file) => total + file.milliseconds, 0);
}

function seconds(value) {
  return (value / 1000).toFixed(1);
}
