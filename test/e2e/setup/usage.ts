// What pods use just now, as their kubelet measures it, beside what they ask for.

import { type KubernetesObject, kubectl } from './kubectl.ts';

export interface Usage {
  readonly pod: string;
  /** Thousandths of a core. */
  readonly cpu: number;
  /** MiB that cannot be reclaimed. */
  readonly memory: number;
  /** As the pod says it. */
  readonly requestedCpu: string;
  readonly requestedMemory: string;
  readonly memoryLimit: string;
}

interface Summary {
  readonly pods: readonly {
    readonly podRef: { readonly name: string; readonly namespace: string };
    readonly cpu?: { readonly usageNanoCores?: number };
    readonly memory?: { readonly workingSetBytes?: number };
  }[];
}

/** Of pods that run; those that have no node or were not measured yet are left out. */
export async function usageOf(pods: readonly KubernetesObject[]): Promise<readonly Usage[]> {
  const nodes = new Set(pods.flatMap(({ spec: { nodeName } }) => (nodeName === undefined ? [] : [String(nodeName)])));
  const summaries = await Promise.all(
    [...nodes].map(async (node) => JSON.parse(await kubectl('get', '--raw', summaryPath(node))) as Summary),
  );
  const measured = summaries.flatMap(({ pods }) => pods);
  return pods.flatMap(({ metadata, spec }) => {
    const { cpu, memory } = measured.find(({ podRef }) => podRef.name === metadata.name) ?? {};
    if (cpu?.usageNanoCores === undefined || memory?.workingSetBytes === undefined) return [];
    const { requests, limits } = spec.containers[0].resources;
    return [
      {
        pod: metadata.name,
        cpu: Math.round(cpu.usageNanoCores / 1e6),
        memory: Math.round(memory.workingSetBytes / 2 ** 20),
        requestedCpu: String(requests.cpu),
        requestedMemory: String(requests.memory),
        memoryLimit: String(limits.memory),
      },
    ];
  });
}

function summaryPath(node: string): string {
  return `/api/v1/nodes/${node}/proxy/stats/summary`;
}
