// What files of one process share: environment, globals, listeners, the clock and the directory.

const NATIVE_TIMER = setTimeout;
const NATIVE_DATE = Date;

export interface ProcessState {
  readonly environment: ReadonlyMap<string, string | undefined>;
  readonly globals: ReadonlySet<string>;
  /** How many listeners each event of the process has. */
  readonly listeners: ReadonlyMap<string, number>;
  readonly directory: string;
}

export function processState(): ProcessState {
  const events = process.eventNames().map(String);
  return {
    environment: new Map(Object.entries(process.env)),
    globals: new Set(Object.getOwnPropertyNames(globalThis)),
    listeners: new Map(events.map((event) => [event, process.listenerCount(event)])),
    directory: process.cwd(),
  };
}

/** What differs now, each as a part of a sentence. */
export function changedSince(before: ProcessState): readonly string[] {
  const now = processState();
  const variables = new Set([...before.environment.keys(), ...now.environment.keys()]);
  const changedVariables = [...variables].filter((name) => before.environment.get(name) !== now.environment.get(name));
  const newGlobals = [...now.globals].filter((name) => !before.globals.has(name));
  const newListeners = [...now.listeners].filter(([event, count]) => count > (before.listeners.get(event) ?? 0));
  return [
    ...changedVariables.map((name) => `the variable ${name}`),
    ...newGlobals.map((name) => `the global ${name}`),
    ...newListeners.map(([event]) => `a listener for ${event}`),
    ...(setTimeout === NATIVE_TIMER && Date === NATIVE_DATE ? [] : ['fake timers']),
    ...(now.directory === before.directory ? [] : ['another directory']),
  ];
}
