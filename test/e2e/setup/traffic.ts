// Steady traffic from a pod through the Service, as the programs of a cluster make it, while something is done to grantry.

import { apply, eventually, getFromPod, kubectl, waitReady } from './kubectl.ts';
import type { Totals } from './pods/traffic.mts';
import { scriptPod } from './pods.ts';

const PORT = 8080;

export interface TrafficOptions {
  /** Where the client and its Secret are. */
  readonly namespace: string;
  readonly secretName: string;
  readonly tokenUrl: string;
  readonly requestsPerSecond: number;
}

/** Token requests that do not stop. */
export class Traffic {
  readonly #namespace: string;
  readonly #name: string;

  private constructor(namespace: string, name: string) {
    this.#namespace = namespace;
    this.#name = name;
  }

  /** Starts it, and waits until it is answered. */
  static async start({ namespace, secretName, tokenUrl, requestsPerSecond }: TrafficOptions): Promise<Traffic> {
    const name = `traffic-${Date.now().toString(36)}`;
    const environment = {
      TOKEN_URL: tokenUrl,
      REQUESTS_PER_SECOND: String(requestsPerSecond),
      PORT: String(PORT),
    };
    const spec = await scriptPod({ namespace, name, script: 'traffic.mts', secretName, environment });
    await apply({ apiVersion: 'v1', kind: 'Pod', metadata: { namespace, name }, spec });
    await waitReady(namespace, `pod/${name}`);
    const traffic = new Traffic(namespace, name);
    await eventually('the traffic is answered', async () => {
      const totals = await traffic.totals().catch(() => undefined);
      return (totals?.answered ?? 0) > requestsPerSecond;
    });
    return traffic;
  }

  /** What happened so far. */
  async totals(): Promise<Totals> {
    return JSON.parse(await getFromPod(this.#namespace, this.#name, PORT, '/')) as Totals;
  }

  /** Waits until so many more requests were answered. */
  async goesOn(answers: number): Promise<void> {
    const { answered } = await this.totals();
    await eventually('the traffic goes on', async () => (await this.totals()).answered >= answered + answers);
  }

  /** Waits for the last answer. @returns what happened in all */
  async stop(): Promise<Totals> {
    const totals = JSON.parse(await getFromPod(this.#namespace, this.#name, PORT, '/stop')) as Totals;
    await kubectl('delete', 'pod', '-n', this.#namespace, this.#name, '--wait=false');
    return totals;
  }
}
