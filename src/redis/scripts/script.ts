// What Redis is asked to do: the words of one atomic action, and the action with the keys and values it is about.

/** One atomic action: its Lua and a name for logs. Every key it touches is declared. */
export interface Script {
  readonly name: string;
  readonly lua: string;
  readonly keys: number;
  /** Must not run once its request was refused: it is told until when it may, as one ARGV more, the last. */
  readonly hasDeadline?: true;
}

/**
 * A command that only reads, without the guard that scripts have: its server may be a replica of Redis by now, and behind. For what
 * never changes once it is there.
 */
export interface PlainRead {
  readonly name: string;
  readonly command: 'HMGET';
  readonly keys: number;
}

/** A script or a command with what it is about. Its keys share a slot. */
export interface Action<Of extends Script | PlainRead = Script> {
  readonly script: Of;
  readonly keys: readonly string[];
  /** Of a script those after the first, which is always the clock offset in ms (0 in production). */
  readonly args?: readonly (string | number)[];
}
