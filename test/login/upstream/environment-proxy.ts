// A proxy that the environment names while a test runs, and that leads every connection to one server of the test.

import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { onTestFinished, vi } from 'vitest';

/** Starts it; it ends with the test. @returns the addresses that it was asked to connect to, one for each connection */
export async function proxyOfTheEnvironment(leadsTo: number): Promise<readonly string[]> {
  const asked: string[] = [];
  const proxy = createServer().on('connect', (request, socket) => {
    asked.push(request.url ?? '');
    const onward = connect(leadsTo, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      onward.pipe(socket).pipe(onward);
    });
    for (const each of [onward, socket]) each.on('error', () => {});
  });
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  const { port } = proxy.address() as AddressInfo;
  for (const name of ['https_proxy', 'HTTPS_PROXY']) vi.stubEnv(name, `http://127.0.0.1:${port}`);
  for (const name of ['no_proxy', 'NO_PROXY']) vi.stubEnv(name, '');
  onTestFinished(() => {
    vi.unstubAllEnvs();
    proxy.close();
  });
  return asked;
}
