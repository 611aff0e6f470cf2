// The end of a process (operations: red at once, drain delay, finish what is in flight, exit 0).

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { drain } from '../../../src/processes/lifecycle/shutdown.ts';
import { createLog } from '../../../src/processes/log/log.ts';
import { basic, startGrantry } from '../../grantry.ts';
import { endProcesses, grantry } from '../grantry-process.ts';

const SECRET = 'kSiQ0yY8Jh1x4nV7wB2dR5tG9mC3fL6p';

describe('draining', () => {
  it('is red at once, still serves during the delay, then takes no more and is over', async () => {
    const grantry = await startGrantry({ clients: [{ clientId: 'team.machine', secret: SECRET }] });
    const { server } = grantry;
    const log = createLog('silent', process.stderr);
    const over = drain({
      draining: server.draining,
      // A busy machine takes its time for the two requests that come meanwhile.
      drainDelaySeconds: 5,
      servers: [server.public, server.admin],
      log,
    });
    expect((await fetch(grantry.adminUrl('/readyz'))).status).toBe(503);
    const response = await grantry.post(
      '/token',
      { grant_type: 'client_credentials' },
      { headers: { authorization: basic('team.machine', SECRET) } },
    );
    expect(response.status).toBe(200);
    expect(await over).toBe(0);
    await expect(fetch(grantry.url('/token'))).rejects.toThrow();
    await grantry.stop();
  });
});

describe('a request in flight', () => {
  it('is finished while the process drains, and its connection ends with it', async () => {
    const grantry = await startGrantry({ clients: [{ clientId: 'team.machine', secret: SECRET }] });
    const { server } = grantry;
    const body = 'grant_type=client_credentials';
    const head = [
      'POST /token HTTP/1.1',
      'Host: a',
      'Content-Type: application/x-www-form-urlencoded',
      `Authorization: ${basic('team.machine', SECRET)}`,
      `Content-Length: ${body.length}`,
    ];
    const socket = connect({ host: '127.0.0.1', port: grantry.port });
    const begun = once(server.public.server, 'request');
    socket.write(`${head.join('\r\n')}\r\n\r\n`);
    await begun;
    const log = createLog('silent', process.stderr);
    const over = drain({
      draining: server.draining,
      drainDelaySeconds: 0,
      servers: [server.public, server.admin],
      log,
    });
    await setTimeout(100);
    socket.write(body);
    const [answer] = await once(socket, 'data');
    expect(String(answer)).toMatch(/^HTTP\/1\.1 200 /);
    expect(await over).toBe(0);
    await grantry.stop();
  });
});

it('a request that came over a kept connection while the process was held up, and the delay ended → answered', async () => {
  const grantry = await startGrantry({ clients: [] });
  const { server } = grantry;
  const socket = connect({ host: '127.0.0.1', port: grantry.port });
  const request = 'GET /.well-known/jwks.json HTTP/1.1\r\nHost: a\r\n\r\n';
  socket.write(request);
  await once(socket, 'data');
  const over = drain({
    draining: server.draining,
    drainDelaySeconds: 0.05,
    servers: [server.public, server.admin],
    log: createLog('silent', process.stderr),
  });
  socket.write(request);
  // Nothing is read in this time, and the timer of the delay is due when it ends.
  const began = performance.now();
  while (performance.now() - began < 100);
  const answered = await Promise.race([once(socket, 'data'), once(socket, 'close')]);
  expect(String(answered)).toMatch(/^HTTP\/1\.1 200 /);
  expect(await over).toBe(0);
  await grantry.stop();
});

/** Runs a process that ends on signals and holds itself open. */
function processThat(does: string) {
  const source = `
    import { fastify } from 'fastify';
    import { createLog } from ${JSON.stringify(new URL('../../../src/processes/log/log.ts', import.meta.url).href)};
    import { Draining, endOnSignals } from ${JSON.stringify(new URL('../../../src/processes/lifecycle/shutdown.ts', import.meta.url).href)};
    const server = fastify({ forceCloseConnections: true });
    await server.listen({ port: 0 });
    const log = createLog('info', process.stdout);
    const flush = () => new Promise((resolve) => process.stdout.write('flushed', resolve));
    endOnSignals({ draining: new Draining(), drainDelaySeconds: DELAY, servers: [server], log, flush, exit: (code) => process.exit(code) });
    process.stdout.write('ready');
    ${does}
  `;
  return source;
}

type OnOutput = (kill: (signal: NodeJS.Signals) => void) => void;

async function run(source: string, onReady: OnOutput, onDraining: OnOutput = () => {}) {
  const child = spawn(process.execPath, ['--input-type=module', '-e', source], {
    cwd: new URL('../../..', import.meta.url),
  });
  let output = '';
  child.stderr.on('data', (chunk) => {
    output += chunk;
  });
  child.stdout.on('data', (chunk) => {
    const before = output;
    output += chunk;
    const isNew = (word: string) => output.includes(word) && !before.includes(word);
    for (const [word, on] of [['ready', onReady] as const, ['draining', onDraining] as const]) {
      if (isNew(word)) on((signal) => child.kill(signal));
    }
  });
  // What it said is all there only when its streams are closed, too.
  const [code] = await once(child, 'close');
  return { code, output };
}

describe('a process', () => {
  it('ends with 0 on SIGTERM and on SIGINT, its log written out', async () => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      const { code, output } = await run(processThat('').replace('DELAY', '0'), (kill) => kill(signal));
      expect([code, output.includes('flushed')]).toEqual([0, true]);
    }
  });

  it('ends at once on the second signal', async () => {
    const { code } = await run(
      processThat('').replace('DELAY', '60'),
      (kill) => kill('SIGTERM'),
      // One that comes before the first one was handled is no second one.
      (kill) => kill('SIGTERM'),
    );
    expect(code).toBe(1);
  });

  it.each(['Promise.reject(new Error("not handled"));', 'setTimeout(() => { throw new Error("not handled"); });'])(
    'logs an unhandled fault and ends with 1: %s',
    async (fault) => {
      const { code, output } = await run(processThat(fault).replace('DELAY', '0'), () => {});
      expect(code).toBe(1);
      expect(output).toContain('not handled');
    },
  );
});

describe.each(['server', 'controller'])('grantry %s', (command) => {
  afterEach(endProcesses);

  it('ends with 1 on an unexpected fault at the start', async () => {
    const environment = {
      GRANTRY_ISSUER: 'https://auth.example.com',
      GRANTRY_NAMESPACE: 'grantry-system',
      GRANTRY_REDIS_URL: 'redis://127.0.0.1:1',
      GRANTRY_ADMIN_PORT: '0',
      KUBERNETES_SERVICE_HOST: '127.0.0.1',
      KUBERNETES_SERVICE_PORT: '1',
      // An address that is of every machine and names no interface.
      GRANTRY_HOST: 'fe80::1',
    };
    const { code, output, errors } = await grantry([command], { environment });
    expect([code, `${output}${errors}`]).toEqual([1, expect.stringContaining('fe80::1')]);
  });
});
