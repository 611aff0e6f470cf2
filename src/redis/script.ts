// What Redis is asked to do: the words of one atomic action.

/** One atomic action: its Lua and a name for logs. Every key it touches is declared. */
export interface Script {
  readonly name: string;
  readonly lua: string;
  readonly keys: number;
  /** Must not run once its request was refused: it is told until when it may, as one ARGV more, the last. */
  readonly expires?: true;
}

/**
 * A command that only reads, without the guard that scripts have: its server may be a replica by now, and behind. For what
 * never changes once it is there.
 */
export interface PlainRead {
  readonly name: string;
  readonly command: 'HMGET';
  readonly keys: number;
}
