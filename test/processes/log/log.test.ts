// The log of a process: bounded, asynchronous, and made for people on a terminal.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';

const SHUTDOWN = JSON.stringify(new URL('../../../src/processes/lifecycle/shutdown.ts', import.meta.url).href);

function run(source: string) {
  const log = JSON.stringify(new URL('../../../src/processes/log/log.ts', import.meta.url).href);
  return spawn(process.execPath, ['--input-type=module', '-e', `import { openLog } from ${log};${source}`]);
}

async function outputOf(source: string): Promise<string> {
  const child = run(source);
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  await once(child, 'close');
  return output;
}

/** The output of a process for a slow reader: the counts of its lines, or their messages. */
async function slowlyRead(source: string) {
  const child = run(source);
  const ended = once(child, 'close');
  // Node discards output that is not being read when the process ends.
  const reader = child.stdout.pipe(new PassThrough({ highWaterMark: 1 }));
  let text = '';
  // First not at all, while the process ends, and then a little at a time.
  await setTimeout(1000);
  for await (const chunk of reader) {
    text += chunk;
    await setTimeout(2);
  }
  const [code] = await ended;
  const lines = text.trimEnd().split('\n');
  return { code, counts: lines.map((line) => JSON.parse(line)).map(({ count, msg }) => count ?? msg) };
}

describe('the log of a process', () => {
  it('waits for no reader: lines that do not fit the buffer of a stalled one are dropped and counted', async () => {
    const child = run(`
      const { log, dropped } = await openLog({ level: 'info', format: 'json' });
      const started = performance.now();
      for (let count = 0; count < 20_000; count += 1) log.info({ filling: 'x'.repeat(1000) });
      const milliseconds = performance.now() - started;
      process.stderr.write(JSON.stringify({ dropped: dropped(), milliseconds }), () => process.exit(0));
    `);
    // Standard output is never read.
    const [report] = await once(child.stderr, 'data');
    expect(JSON.parse(String(report)).dropped).toBeGreaterThan(10_000);
    child.kill('SIGKILL');
  });

  it('on a terminal shows what the reason of a refusal is about', async () => {
    const output = await outputOf(`
      const { log } = await openLog({ level: 'info', format: 'pretty' });
      const fields = { route: 'token', status: 401, outcome: 'refused', reason: 'client_unknown', detail: 'shop.wbe' };
      log.info(Object.assign(fields, { durationMs: 1.5, requestId: 'r1' }));
    `);
    expect(output).toContain('token 401 refused client_unknown shop.wbe (1.5 ms) r1');
  });

  it('is complete after a flush', async () => {
    const output = await outputOf(`
      const { log, flush } = await openLog({ level: 'info', format: 'json' });
      for (let count = 0; count < 1000; count += 1) log.info({ count });
      await flush();
      process.exit(0);
    `);
    const lines = output
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines.map(({ count }) => count)).toEqual(Array.from({ length: 1000 }, (_, index) => index));
    expect(lines[0]).toEqual({ level: 'info', time: expect.stringMatching(/^\d{4}-.*Z$/), count: 0 });
  });

  it('loses, repeats and reorders nothing at an orderly end, however slow its reader', async () => {
    const output = await slowlyRead(`
      const { log, dropped, flush } = await openLog({ level: 'info', format: 'json' });
      for (let count = 0; count < 3000; count += 1) {
        log.info({ count, filling: 'x'.repeat(1000) });
        if (count % 500 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
      }
      await flush();
      process.exit(dropped());
    `);
    expect(output).toEqual({ code: 0, counts: Array.from({ length: 3000 }, (_, index) => index) });
  });

  it('is written once, and whole, when something throws while much of it is on its way to a slow reader', async () => {
    const output = await slowlyRead(`
      import { Draining, endOnSignals } from ${SHUTDOWN};
      const { log, flush } = await openLog({ level: 'info', format: 'json' });
      const exit = (code) => process.exit(code);
      endOnSignals({ draining: new Draining(), drainDelaySeconds: 0, servers: [], log, flush, exit });
      for (let count = 0; count < 3000; count += 1) log.info({ count, filling: 'x'.repeat(1000) });
      setTimeout(() => { log.info({ count: 3000 }); throw new Error('uncaught'); }, 20);
    `);
    expect(output).toEqual({ code: 1, counts: [...Array.from({ length: 3001 }, (_, index) => index), 'unhandled'] });
  });

  it('is written by the exit of the process where it was not flushed', async () => {
    const output = await slowlyRead(`
      const { log } = await openLog({ level: 'info', format: 'json' });
      for (let count = 0; count < 20; count += 1) log.info({ count });
      process.exit(3);
    `);
    expect(output).toEqual({ code: 3, counts: Array.from({ length: 20 }, (_, index) => index) });
  });

  it('is given up by a flush when its reader takes nothing any more', async () => {
    const child = run(`
      const { log, dropped, flush } = await openLog({ level: 'info', format: 'json' });
      for (let count = 0; count < 3000; count += 1) log.info({ filling: 'x'.repeat(1000) });
      await flush();
      process.stderr.write(String(dropped()));
    `);
    // Standard output is never read.
    const [dropped] = await once(child.stderr, 'data');
    expect(Number(dropped)).toBeGreaterThan(1000);
    // A thread that the reader holds up holds up the exit too.
    child.kill('SIGKILL');
  });

  it('is JSON without a terminal, and human-readable when asked', async () => {
    const line = (format: string) => `
      const { log, flush } = await openLog({ level: 'info', format: '${format}' });
      log.info({ route: 'token' }, 'hello');
      await flush();
    `;
    expect(JSON.parse(await outputOf(line('auto')))).toMatchObject({ msg: 'hello', route: 'token' });
    const readable = await outputOf(line('pretty'));
    expect(readable).toContain('hello');
    expect(readable).not.toContain('{"level"');
  });

  it('shows people each request in one line of words, and of the audit stream the alerts', async () => {
    const output = await outputOf(`
      const { log } = await openLog({ level: 'info', format: 'pretty' });
      const facts = { clientId: 'default.job', grantType: 'client_credentials' };
      log.info({ requestId: 'r1', route: 'token', method: 'POST', status: 200, durationMs: 1.5, ...facts, outcome: 'issued' });
      const audit = log.child({ stream: 'audit' });
      audit.info({ event: 'token.issued', clientId: 'default.job' });
      audit.warn({ event: 'refresh_token.reuse_detected', clientId: 'default.web', alert: { id: 'a1', action: 'family_revoked' } });
      log.info({ drainDelaySeconds: 5 }, 'draining');
      log.info({ route: 'token', status: 401, durationMs: 2, clientId: 'x\\n\\u001b[31m', requestId: 'r2' });
    `);
    const lines = output.trimEnd().split('\n');
    expect(lines.map((line) => line.replace(/^\[[\d:]+\] /, ''))).toEqual([
      'INFO: token 200 issued default.job client_credentials (1.5 ms)',
      'WARN: audit refresh_token.reuse_detected default.web family_revoked a1',
      'INFO: draining drainDelaySeconds=5',
      'INFO: token 401 x\\u{a}\\u{1b}[31m (2 ms) r2',
    ]);
  });

  it('keeps the audit stream whatever its level', async () => {
    const output = await outputOf(`
      const { log, flush } = await openLog({ level: 'error', format: 'json' });
      log.info('not this');
      log.child({ stream: 'audit' }, { level: 'info' }).info({ event: 'token.issued' });
      await flush();
    `);
    expect(JSON.parse(output)).toMatchObject({ stream: 'audit', event: 'token.issued' });
  });
});
