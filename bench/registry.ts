// From a list of OAuthClients to serving them: CPU, the longest delay of the event loop, and memory (docs/adr/0057);
// then one change among all of them. `node bench/registry.ts [clients] [resources]`: ProtectedResources beside them, none
// by default; the other side is registry-api-server.ts.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { RegistrySync } from '../src/cluster-registry/registry-sync.ts';
import { ApiClient } from '../src/kubernetes/api/api-client.ts';
import { kubeconfigAccess } from '../src/kubernetes/api/kubeconfig.ts';
import { CLIENT_AUTH_METHODS } from '../src/oauth/client-auth/index.ts';

const CLIENTS = Number(process.argv[2] ?? 20_000);
const RESOURCES = Number(process.argv[3] ?? 0);
const CHANGES = 50;

const API_SERVER = join(import.meta.dirname, 'registry-api-server.ts');

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** The longest delay of a timer, in milliseconds. */
const delays = monitorEventLoopDelay({ resolution: 1 });
delays.enable();

function takeLongestBlock(): number {
  const longest = delays.max / 1e6;
  delays.reset();
  return longest;
}

function cpuSeconds(since?: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1e6;
}

const child = spawn(process.execPath, [API_SERVER, String(CLIENTS), String(RESOURCES)], {
  stdio: ['pipe', 'pipe', 'inherit'],
});
process.on('exit', () => child.kill());
const [address] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];

const folder = mkdtempSync(join(tmpdir(), 'grantry-bench-'));
const kubeconfig = join(folder, 'kubeconfig');
const entry = { name: 'bench' };
writeFileSync(
  kubeconfig,
  JSON.stringify({
    'current-context': 'bench',
    clusters: [{ ...entry, cluster: { server: address } }],
    users: [{ ...entry, user: {} }],
    contexts: [{ ...entry, context: { cluster: 'bench', user: 'bench' } }],
  }),
);
const clock = { now: () => Date.now() };
const log = { info: () => {}, warn: console.error, error: console.error };
const api = new ApiClient({ access: kubeconfigAccess({ files: [kubeconfig], clock }), userAgent: 'grantry/bench' });
rmSync(folder, { recursive: true });

let swapped = Promise.withResolvers<void>();
collect();
const heapBefore = process.memoryUsage().heapUsed;
delays.reset();
const cpuBefore = process.cpuUsage();
const begin = performance.now();
const registry = new RegistrySync({
  api,
  clock,
  log,
  random: { bytes: (count) => crypto.getRandomValues(new Uint8Array(count)) },
  issuer: 'https://id.example',
  className: 'default',
  releaseNamespace: 'grantry',
  defaultPolicy: 'Baseline',
  supportedAuthMethods: [...CLIENT_AUTH_METHODS.keys()],
  watchNamespaces: [],
  metrics: { watchEvent: () => {}, watchRestarted: () => {}, changeRefused: () => {} },
});
registry.start({ onSwap: () => swapped.resolve(), onSecret: () => {}, onUsers: () => {} });
await registry.whenServing();
const listing = { seconds: (performance.now() - begin) / 1000, cpu: cpuSeconds(cpuBefore) };
// The last block is seen when it is over.
await sleep(20);
const longestBlock = takeLongestBlock();
if (registry.current.size !== CLIENTS) throw new Error(`${registry.current.size} clients are served`);
const { size } = registry.current.resources;
if (size !== RESOURCES) throw new Error(`${size} resources are served`);
await sleep(1000);
collect();
const { heapUsed, rss } = process.memoryUsage();
const heap = (heapUsed - heapBefore) / CLIENTS;
const mebibytes = (bytes: number) => `${Math.round(bytes / 1024 / 1024)} MiB`;
/** The most so far: while all is listed and validated. */
const mostResident = process.resourceUsage().maxRSS * 1024;

/** @param line see registry-api-server.ts */
async function changesOf(line: string) {
  takeLongestBlock();
  const milliseconds: number[] = [];
  const cpuAtChanges = process.cpuUsage();
  for (let change = 0; change < CHANGES; change++) {
    swapped = Promise.withResolvers();
    const from = performance.now();
    child.stdin.write(`${line}\n`);
    await swapped.promise;
    milliseconds.push(performance.now() - from);
    await sleep(20);
  }
  const cpu = (cpuSeconds(cpuAtChanges) * 1000) / CHANGES;
  milliseconds.sort((a, b) => a - b);
  return [
    ['until it is served', `${milliseconds[CHANGES / 2]?.toFixed(1)} ms`],
    ['CPU', `${cpu.toFixed(1)} ms`],
    ['longest block', `${takeLongestBlock().toFixed(0)} ms`],
  ] as const;
}

const ofClient = await changesOf('');
const ofResource = RESOURCES === 0 ? [] : await changesOf('resource');

const rows = [
  [
    `${CLIENTS} clients, ${RESOURCES} resources, list to serving: CPU`,
    `${listing.cpu.toFixed(2)} s`,
    'at most 3 s for 20 000',
  ],
  ['the same by the clock', `${listing.seconds.toFixed(2)} s`, ''],
  ['the same: longest block', `${longestBlock.toFixed(0)} ms`, 'goal 60 ms'],
  ['the same: heap for each client', `${heap.toFixed(0)} B`, 'at most 3072 B'],
  ['the same: resident memory, and the most of it', `${mebibytes(rss)}, ${mebibytes(mostResident)}`, ''],
  ...ofClient.map(([what, figure]) => [`one change among them: ${what}`, figure]),
  ...ofResource.map(([what, figure]) => [`one change of a resource: ${what}`, figure]),
];
for (const [name = '', figure = '', target = ''] of rows) {
  process.stdout.write(`${name.padEnd(60)} ${figure.padStart(16)}  ${target}\n`);
}
await registry.stop();
api.close();
process.exit(0);
