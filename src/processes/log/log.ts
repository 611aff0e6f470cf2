// The log of a process: pino over standard output (`log-output.ts`). On a terminal the lines are human-readable.

import { type DestinationStream, type Logger, pino } from 'pino';
import { isForPeople, readableLine } from './log-line.ts';
import { LogOutput } from './log-output.ts';

export interface ProcessLog {
  readonly log: Logger;
  /** The number of lines dropped since the start. */
  readonly dropped: () => number;
  /** Writes the buffered lines; for the end of the process. Never rejects. */
  readonly flush: () => Promise<void>;
}

/** @param options.format `auto`: human-readable when standard output is a terminal, else JSON */
export async function openLog(options: { level: string; format: 'auto' | 'json' | 'pretty' }): Promise<ProcessLog> {
  const readable = options.format === 'pretty' || (options.format === 'auto' && process.stdout.isTTY);
  if (readable) {
    return { log: createLog(options.level, await readableStream()), dropped: () => 0, flush: async () => {} };
  }
  const output = new LogOutput();
  return { log: createLog(options.level, output), dropped: () => output.dropped, flush: () => output.flush() };
}

async function readableStream(): Promise<DestinationStream> {
  const { default: pretty } = await import('pino-pretty');
  const stream = pretty({
    translateTime: 'SYS:HH:MM:ss',
    hideObject: true,
    sync: true,
    messageFormat: (fields) => readableLine(fields),
  });
  return { write: (line) => isForPeople(JSON.parse(line)) && stream.write(line) };
}

/** A logger in the format of grantry over any stream. */
export function createLog(level: string, stream: DestinationStream): Logger {
  const formatters = { level: (label: string) => ({ level: label }) };
  return pino({ level, base: null, timestamp: isoTime(), formatters }, stream);
}

/** The time of a line, in ISO 8601. Lines of one millisecond share the text: a busy process writes dozens. */
function isoTime(): () => string {
  let milliseconds = 0;
  let text = '';
  return () => {
    const now = Date.now();
    if (now !== milliseconds) text = `,"time":"${new Date(now).toISOString()}"`;
    milliseconds = now;
    return text;
  };
}
