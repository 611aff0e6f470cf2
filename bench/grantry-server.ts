// The grantry under test: `grantry dev` as it is shipped, over the manifests of `load-manifests.ts`.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ISSUER, PEPPER } from './load/load-client.ts';
import { type FolderOptions, furtherClient, manifests } from './load/load-manifests.ts';
import { freePort, type PinnedServer, startServer } from './load/pinned-process.ts';

const PEPPER_FILE = 'pepper';
/** `grantry dev` reads no file above 1 MiB. */
const CLIENTS_OF_A_FILE = 1000;

/** A folder with the manifests and the pepper, gone after the run; the processes that share it are replicas of one server. */
export function manifestFolder(options: FolderOptions = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'grantry-bench-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'load.yaml'), manifests(options));
  for (let from = 1; from < (options.clients ?? 1); from += CLIENTS_OF_A_FILE) {
    const count = Math.min(CLIENTS_OF_A_FILE, (options.clients ?? 1) - from);
    const clients = Array.from({ length: count }, (_, index) => furtherClient(from + index));
    writeFileSync(join(folder, `clients-${from}.yaml`), clients.join(''));
  }
  writeFileSync(join(folder, PEPPER_FILE), PEPPER);
  return folder;
}

/** A grantry, and where its metrics are. */
export interface GrantryServer extends PinnedServer {
  readonly adminOrigin: string;
}

/**
 * Starts one process.
 * @param options.redisUrl where its state is; without it, in memory
 * @param options.tree the copy of the sources; default: this one
 */
export async function startGrantry({
  folder,
  redisUrl,
  cores,
  tree = '.',
}: {
  readonly folder: string;
  readonly redisUrl?: string;
  readonly cores?: string;
  readonly tree?: string;
}): Promise<GrantryServer> {
  const adminPort = String(await freePort());
  const redis = redisUrl === undefined ? [] : ['--redis', redisUrl];
  const dev = [
    join(tree, 'src/main.ts'),
    'dev',
    folder,
    '--issuer',
    ISSUER,
    '--admin-port',
    adminPort,
    ...redis,
    '--port',
  ];
  const server = await startServer({
    args: (port) => [...dev, String(port)],
    environment: { GRANTRY_PEPPER_FILE: join(folder, PEPPER_FILE) },
    probe: '/.well-known/jwks.json',
    ...(cores !== undefined && { cores }),
  });
  return { ...server, adminOrigin: `http://127.0.0.1:${adminPort}` };
}
