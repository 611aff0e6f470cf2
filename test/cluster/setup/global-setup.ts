// The API server of a run: started before the first test of the project `cluster`, ended after the last.

import type { TestProject } from 'vitest/node';
import { ApiServer } from './api-server.ts';
import { Cluster } from './cluster.ts';

let server: ApiServer | undefined;

export async function setup(project: TestProject): Promise<void> {
  server = await ApiServer.start();
  await new Cluster(server.address).applyCrds();
  project.provide('apiServer', server.address);
}

export async function teardown(): Promise<void> {
  await server?.stop();
}
