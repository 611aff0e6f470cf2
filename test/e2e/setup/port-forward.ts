// A way from this process to a Service: `kubectl port-forward` on loopback. It leads to one pod, so what must not break when
// a pod goes is asked from inside of the cluster (traffic.ts).

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { until } from '../../until.ts';

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill();
});

/** A local port that leads into the cluster. */
export class PortForward {
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.url = url;
  }

  /** @param target such as `service/grantry`; `localPort`: default any free one */
  static async open(
    namespace: string,
    target: string,
    { port, localPort }: { readonly port: number; readonly localPort?: number },
  ): Promise<PortForward> {
    const ports = `${localPort ?? ''}:${port}`;
    const args = ['port-forward', '-n', namespace, '--address', '127.0.0.1', target, ports];
    const child = spawn('kubectl', args, { stdio: ['ignore', 'pipe', 'pipe'] });
    running.add(child);
    child.once('exit', () => running.delete(child));
    let said = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => {
        said += text;
      });
    }
    await until(
      `kubectl ${args.join(' ')}`,
      () => {
        if (child.exitCode !== null) throw new Error(`kubectl ${args.join(' ')}: ${said}`);
        return said.includes('Forwarding from');
      },
      60_000,
    );
    const [, local] = said.match(/Forwarding from 127\.0\.0\.1:(\d+)/) ?? [];
    return new PortForward(child, `http://127.0.0.1:${local}`);
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill();
    await ended;
  }
}
