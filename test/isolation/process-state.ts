// What files of one process share: environment, globals, listeners, the clock, the directory, and what keeps the process
// running.

const NATIVE_TIMER = setTimeout;
const NATIVE_DATE = Date;

/** What Node calls a resource of the event loop. */
const RESOURCES = {
  TCPServerWrap: 'a server that listens',
  ProcessWrap: 'a child process',
  FSEventWrap: 'a watched folder',
} as const;

export interface ProcessState {
  readonly environment: ReadonlyMap<string, string | undefined>;
  readonly globals: ReadonlySet<string>;
  /** How many listeners each event of the process has. */
  readonly listeners: ReadonlyMap<string, number>;
  readonly directory: string;
  /** The names of what keeps the process running, each as often as there is one. */
  readonly resources: readonly string[];
}

export function processState(): ProcessState {
  const events = process.eventNames().map(String);
  return {
    environment: new Map(Object.entries(process.env)),
    // tslib, which a library loads with a module of its own, leaves `__extends` and its like.
    globals: new Set(Object.getOwnPropertyNames(globalThis).filter((name) => !name.startsWith('__'))),
    listeners: new Map(events.map((event) => [event, process.listenerCount(event)])),
    directory: process.cwd(),
    resources: process.getActiveResourcesInfo(),
  };
}

/** What differs now, each as a part of a sentence. */
export function changedSince(before: ProcessState): readonly string[] {
  const now = processState();
  const variables = new Set([...before.environment.keys(), ...now.environment.keys()]);
  const changedVariables = [...variables].filter((name) => before.environment.get(name) !== now.environment.get(name));
  const newGlobals = [...now.globals].filter((name) => !before.globals.has(name));
  const newListeners = [...now.listeners].filter(([event, count]) => count > (before.listeners.get(event) ?? 0));
  const newResources = Object.entries(RESOURCES).filter(
    ([name]) => countOf(name, now.resources) > countOf(name, before.resources),
  );
  return [
    ...changedVariables.map((name) => `the variable ${name}`),
    ...newGlobals.map((name) => `the global ${name}`),
    ...newListeners.map(([event]) => `a listener for ${event}`),
    ...(setTimeout === NATIVE_TIMER && Date === NATIVE_DATE ? [] : ['fake timers']),
    ...(now.directory === before.directory ? [] : ['another directory']),
    ...newResources.map(([, what]) => what),
  ];
}

function countOf(name: string, names: readonly string[]): number {
  return names.filter((other) => other === name).length;
}
