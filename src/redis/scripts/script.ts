// Scripts and actions: a script is the Lua of one atomic action, an action is a script with its keys and arguments.

/** One atomic script: its Lua and a name for logs. Every key it touches is declared. */
export interface Script {
  readonly name: string;
  readonly lua: string;
  readonly keys: number;
  /** The script must not run once its request was refused: it gets its deadline as an additional, last ARGV. */
  readonly hasDeadline?: true;
  /**
   * The script runs while the memory of Redis is full (`allow-oom`): it ends something, compensates, or renews a
   * heartbeat, and stores a few bytes at most. No other script gets flags: with flags and without this one Redis
   * refuses even the reads of a script then.
   */
  readonly allowsOom?: true;
}

/**
 * A read command without the primary-only guard of scripts: its server may be a replica of Redis by now, and behind.
 * For values that never change once they are written.
 */
export interface PlainRead {
  readonly name: string;
  readonly command: 'HMGET';
  readonly keys: number;
}

/** A script or a command with its keys and arguments. Its keys share a slot. */
export interface Action<Of extends Script | PlainRead = Script> {
  readonly script: Of;
  readonly keys: readonly string[];
  /** The arguments after the first one of a script, which is always the clock offset in ms (0 in production). */
  readonly args?: readonly (string | number)[];
}
