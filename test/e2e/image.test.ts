// The image by itself, under what the restricted Pod Security standard asks and with a root that cannot be written.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { figure } from './setup/diagnosis.ts';
import { apply, createNamespace, deleteNamespaces, eventually, get, kubectl } from './setup/kubectl.ts';
import { IMAGE } from './setup/pods.ts';

const NAMESPACE = 'e2e-image';
const APPLICATION_MEGABYTES = 40;

beforeAll(() => createNamespace(NAMESPACE));
afterAll(() => deleteNamespaces(NAMESPACE));

/** How a pod of the image ended. */
interface End {
  readonly exitCode: number;
  readonly printed: string;
}

/** Runs the image to its end. What stands in `container` is the container's, such as `args`. */
async function runImage(name: string, container: Readonly<Record<string, unknown>>): Promise<End> {
  await apply({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: NAMESPACE, name },
    spec: {
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name: 'image',
          image: IMAGE,
          imagePullPolicy: 'IfNotPresent',
          ...container,
          securityContext: {
            allowPrivilegeEscalation: false,
            capabilities: { drop: ['ALL'] },
            readOnlyRootFilesystem: true,
          },
        },
      ],
    },
  });
  let exitCode: number | undefined;
  await eventually(`pod ${name} ends`, async () => {
    const { status } = await get('pod', name, NAMESPACE);
    exitCode = status?.containerStatuses?.[0]?.state?.terminated?.exitCode;
    return exitCode !== undefined;
  });
  return { exitCode: exitCode ?? -1, printed: (await kubectl('logs', '-n', NAMESPACE, name)).trim() };
}

/** Runs these lines with the image's Node; they print JSON. */
async function askImage(name: string, lines: string): Promise<Readonly<Record<string, unknown>>> {
  const { printed } = await runImage(name, { command: ['node', '--input-type=module', '--eval', lines] });
  return JSON.parse(printed);
}

it('the image runs grantry, whose version it says', async () => {
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'));
  expect(await runImage('version', { args: ['--version'] })).toEqual({ exitCode: 0, printed: version });
});

it('a server without configuration names what it needs, and ends', async () => {
  const { exitCode, printed } = await runImage('unconfigured', { args: ['server'] });
  expect(exitCode).toBe(2);
  for (const variable of ['GRANTRY_ISSUER', 'GRANTRY_NAMESPACE', 'GRANTRY_REDIS_URL']) {
    expect(printed).toContain(variable);
  }
});

it('the image runs as an unprivileged user, and holds no more than it needs', async () => {
  const facts = await askImage(
    'facts',
    `import { readdirSync, statSync } from 'node:fs';
    const files = readdirSync('/app', { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    const paths = files.map(({ parentPath, name }) => parentPath + '/' + name);
    console.log(JSON.stringify({
      user: process.getuid(),
      megabytes: paths.reduce((sum, path) => sum + statSync(path).size, 0) / 1e6,
      ours: paths.filter((path) => statSync(path).uid === process.getuid()),
      idle: paths.filter((path) => /\\.(ts|map|bare)$/.test(path)),
      nodes: paths.filter((path) => /\\/node(\\.exe)?$/.test(path)),
    }));`,
  );
  expect(facts).toMatchObject({ user: 65532, ours: [], idle: [], nodes: [] });
  expect(facts.megabytes).toBeLessThan(APPLICATION_MEGABYTES);
  figure(`application in the image: ${Number(facts.megabytes).toFixed(1)} MB`);
});

it('what Node compiles of the program at a start is in the image, and Node takes it', async () => {
  const env = [{ name: 'NODE_DEBUG_NATIVE', value: 'COMPILE_CACHE' }];
  const { printed } = await runImage('compiled', { args: ['server'], env });
  const outcomes = [...printed.matchAll(/V8 code cache for \w+ (\S+) was (\w+)/g)];
  expect(outcomes.length).toBeGreaterThan(100);
  expect(outcomes.filter(([, , outcome]) => outcome !== 'accepted').map(([, file]) => file)).toEqual([]);
});

it('a server says its first word soon', async () => {
  const environment = {
    GRANTRY_ISSUER: 'https://auth.example.com',
    GRANTRY_NAMESPACE: NAMESPACE,
    GRANTRY_REDIS_URL: 'redis://127.0.0.1:1',
  };
  const { firsts, wall, cpu } = await askImage(
    'start',
    `import { spawn } from 'node:child_process';
    import { once } from 'node:events';
    import { readFileSync } from 'node:fs';
    const env = { ...process.env, ...${JSON.stringify(environment)} };
    const [firsts, wall, cpu] = [[], [], []];
    while (firsts.length < 7) {
      const started = performance.now();
      const server = spawn('node', ['/app/dist/main.js', 'server'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
      const [data] = await once(server.stdout, 'data');
      wall.push(Math.round(performance.now() - started));
      // Hundredths of a second, in user mode and in the kernel.
      const [user, kernel] = readFileSync('/proc/' + server.pid + '/stat', 'utf8').split(' ').slice(13);
      cpu.push((Number(user) + Number(kernel)) * 10);
      firsts.push(JSON.parse(String(data).split('\\n')[0]).msg);
      server.kill('SIGKILL');
      await once(server, 'close');
    }
    const median = (all) => all.sort((one, other) => one - other)[(all.length - 1) / 2];
    console.log(JSON.stringify({ firsts, wall: median(wall), cpu: median(cpu) }));`,
  );
  // It has come as far as asking the API server.
  expect(firsts).toEqual(Array(7).fill(expect.stringContaining('NoCredentials')));
  figure(`grantry server from start to its first line of log: ${wall} ms, ${cpu} ms of them on a core (medians of 7)`);
});
