// Which requests get a line when successful token requests are sampled.

import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { RequestLog } from '../../../src/http/server/request-log.ts';
import { createLog } from '../../../src/processes/log/log.ts';

function linesOf(oneTokenIn: number, requests: readonly { route: string; status: number }[]) {
  const lines: { route: string; status: number; level: string }[] = [];
  const stream = new Writable({
    decodeStrings: false,
    write(line: string, _encoding, done) {
      lines.push(JSON.parse(line));
      done();
    },
  });
  const log = new RequestLog({ log: createLog('info', stream), oneTokenIn });
  for (const { route, status } of requests) {
    log.write({ requestId: 'r', route, method: 'POST', status, durationMilliseconds: 1, facts: {} });
  }
  return lines;
}

const many = (count: number, route: string, status: number) => Array.from({ length: count }, () => ({ route, status }));

describe('the request log', () => {
  it('keeps one successful token request in so many, the first included', () => {
    expect(linesOf(10, many(25, 'token', 200))).toHaveLength(3);
    expect(linesOf(1, many(25, 'token', 200))).toHaveLength(25);
  });

  it('keeps every refusal and every request of another kind', () => {
    const lines = linesOf(1000, [...many(5, 'token', 401), ...many(5, 'revoke', 200), ...many(5, 'token', 503)]);
    expect(lines).toHaveLength(15);
  });

  it('raises what failed on our side to the level error', () => {
    const lines = linesOf(1, [...many(1, 'token', 499), ...many(1, 'token', 500)]);
    expect(lines.map(({ level }) => level)).toEqual(['info', 'error']);
  });
});
