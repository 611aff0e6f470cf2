// A release of the chart: installed, upgraded, tested and uninstalled by helm, and inspected by its labels.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  eventually,
  getFromPod,
  type KubernetesObject,
  kubectl,
  list,
  type Outcome,
  outcomeOf,
  PATIENCE,
  run,
} from './kubectl.ts';
import { IMAGE } from './pods.ts';

const CHART = join(import.meta.dirname, '../../../charts/grantry');
/** The stand-in or the mirror of it that the cluster has. */
export const REDIS_IMAGE = process.env.GRANTRY_E2E_REDIS_IMAGE ?? 'redis:7';
const ADMIN_PORT = 9401;
const LIMIT = `--timeout=${PATIENCE / 1000}s`;
/** Until everything is ready, or gone. */
const WAIT = ['--wait', LIMIT];

/** A part of a release, as `app.kubernetes.io/component` calls it. */
export type Part = 'server' | 'controller' | 'redis';

/** Values as values.yaml nests them. */
export type Values = Readonly<Record<string, unknown>>;

export interface ReleaseOptions {
  readonly namespace: string;
  readonly name: string;
}

/** One install of grantry. */
export class Release {
  readonly namespace: string;
  readonly name: string;

  constructor({ namespace, name }: ReleaseOptions) {
    this.namespace = namespace;
    this.name = name;
  }

  /** Installs it with these values and what every test needs, and waits until all pods are ready. @throws what helm says */
  async install(values: Values): Promise<void> {
    const files = valuesFiles(
      { image: imageValues(IMAGE), redis: { dev: { image: imageValues(REDIS_IMAGE) } } },
      values,
    );
    try {
      await run('helm', ['install', ...this.#place, CHART, ...files.options, ...WAIT]);
    } finally {
      files.remove();
    }
  }

  /** Changes values and keeps the others. @throws what helm says */
  async upgrade(values: Values): Promise<void> {
    const files = valuesFiles(values);
    const keep = '--reset-then-reuse-values';
    try {
      await run('helm', ['upgrade', ...this.#place, CHART, keep, ...files.options, ...WAIT]);
    } finally {
      files.remove();
    }
  }

  /** Back to the revision before. */
  async rollback(): Promise<void> {
    await run('helm', ['rollback', this.name, '-n', this.namespace, ...WAIT]);
  }

  async uninstall(): Promise<void> {
    await run('helm', ['uninstall', this.name, '-n', this.namespace, ...WAIT]);
  }

  /** `helm test`, with what its pods printed. */
  async test(): Promise<Outcome> {
    return await outcomeOf('helm', ['test', this.name, '-n', this.namespace, '--logs', LIMIT]);
  }

  async isInstalled(): Promise<boolean> {
    const { code } = await outcomeOf('helm', ['status', this.name, '-n', this.namespace]);
    return code === 0;
  }

  /** What objects of this part are called. */
  nameOf(part: Part): string {
    return `${this.#base}-${part}`;
  }

  /** Where programs of the cluster reach it. */
  get url(): string {
    return `http://${this.#base}.${this.namespace}`;
  }

  get tokenUrl(): string {
    return `${this.url}/token`;
  }

  get service(): string {
    return `service/${this.#base}`;
  }

  /** Of its pods that are not on their way out. */
  async pods(part: Part): Promise<readonly KubernetesObject[]> {
    const pods = await list('pods', this.namespace, this.selector(part));
    return pods.filter(({ metadata }) => !('deletionTimestamp' in metadata));
  }

  selector(part: Part): string {
    return `app.kubernetes.io/instance=${this.name},app.kubernetes.io/component=${part}`;
  }

  /** Waits until so many pods of a part are ready. */
  async ready(part: Part, count: number): Promise<void> {
    await eventually(`${count} pods of ${this.namespace}/${this.name} ${part} are ready`, async () => {
      const pods = await this.pods(part);
      return pods.length === count && pods.every(isReady);
    });
  }

  /** Waits until a part has as many pods as it wants, all ready, and none on its way out. */
  async settled(part: Part): Promise<void> {
    await kubectl('rollout', 'status', '-n', this.namespace, `deployment/${this.nameOf(part)}`, LIMIT);
    await eventually(`no pod of ${this.namespace}/${this.name} ${part} is on its way out`, async () => {
      const [all, staying] = [await list('pods', this.namespace, this.selector(part)), await this.pods(part)];
      return all.length === staying.length;
    });
  }

  /** The lines of `/readyz` of one of its pods; for people, also those of a pod that is not ready. */
  async readyz(part: Part): Promise<string> {
    const [pod] = await this.pods(part);
    if (pod === undefined) throw new Error(`${this.name} has no pod ${part}`);
    return await getFromPod(this.namespace, pod.metadata.name, ADMIN_PORT, '/readyz');
  }

  /** What the pods of a part logged. */
  async logs(part: Part): Promise<string> {
    return await kubectl('logs', '-n', this.namespace, '-l', this.selector(part), '--tail=500', '--prefix');
  }

  get #base(): string {
    return this.name.includes('grantry') ? this.name : `${this.name}-grantry`;
  }

  get #place(): readonly string[] {
    return [this.name, '-n', this.namespace];
  }
}

function isReady({ status }: KubernetesObject): boolean {
  const conditions: { type: string; status: string }[] = status?.conditions ?? [];
  return conditions.some((condition) => condition.type === 'Ready' && condition.status === 'True');
}

/** `repository:tag` as the chart has it. */
export function imageValues(image: string): Values {
  const colon = image.lastIndexOf(':');
  if (colon <= image.lastIndexOf('/')) throw new Error(`the image ${image} has no tag`);
  return { repository: image.slice(0, colon), tag: image.slice(colon + 1) };
}

/** Files for `--values`: lists and nested values need no quoting there. */
function valuesFiles(...all: readonly Values[]): { readonly options: readonly string[]; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'grantry-e2e-'));
  const options = all.flatMap((values, index) => {
    const file = join(folder, `${index}.json`);
    writeFileSync(file, JSON.stringify(values));
    return ['--values', file];
  });
  return { options, remove: () => rmSync(folder, { recursive: true }) };
}
