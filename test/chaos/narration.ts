// A broken promise, described so that a person can follow it: what was done to its grant, and what happened to Redis meanwhile.

import type { Operation } from './history.ts';
import type { ActReport } from './rounds.ts';

const MOST = 5;

/** The first few broken promises of an act, each with the whole history of its grant. */
export function narrate({ violations, operations, faults }: ActReport): string {
  // Several of one grant have the same history.
  const narrated = violations.filter(
    ({ grantId }, index) => violations.findIndex((each) => each.grantId === grantId) === index,
  );
  return narrated
    .slice(0, MOST)
    .map(({ promise, grantId, operations: proof }) => {
      const own = operations.filter((operation) => operation.grantId === grantId);
      const [first = 0, last = 0] = [
        Math.min(...own.map(({ begin }) => begin)),
        Math.max(...own.map(({ end }) => end)),
      ];
      const lines = [
        ...own.map((operation) => ({
          time: operation.begin,
          text: `${proof.includes(operation) ? '>' : ' '} ${describe(operation)}`,
        })),
        ...faults
          .filter(({ from, to }) => first <= to && from <= last)
          .flatMap(({ name, from, mended, to, lostSince }) => [
            {
              time: from,
              text: `  -- ${name}${lostSince === undefined ? '' : `, losing what came after ${at(lostSince)}`}`,
            },
            { time: mended, text: '  -- there is a server that can answer' },
            { time: to, text: '  -- every server serves again' },
          ]),
      ];
      const story = lines.sort((a, b) => a.time - b.time).map(({ time, text }) => `${at(time)} ${text}`);
      return [`\nBROKEN: ${promise} (${grantId})`, ...story].join('\n');
    })
    .join('\n');
}

function describe({ kind, generation, intent, replica, begin, end, seen }: Operation): string {
  const what = `${kind}${generation === undefined ? '' : ` ${generation}`}${intent === 'misuse' ? ' (misuse)' : ''}`;
  const detail = seen.kind === 'granted' ? ` ${seen.generation}` : seen.kind === 'unexpected' ? ` ${seen.what}` : '';
  return `${what} at ${replica}: ${seen.kind}${detail} after ${Math.round(end - begin)} ms`;
}

function at(time: number): string {
  return (time / 1000).toFixed(3).padStart(9);
}
