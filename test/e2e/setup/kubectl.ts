// kubectl and helm as people use them: child processes that find the cluster by KUBECONFIG. `npm run test:e2e`
// (scripts/e2e.mjs) puts both on the PATH and says which cluster it is.

import { spawn } from 'node:child_process';
import { until } from '../../until.ts';

/** A program that ran to its end. */
export interface Outcome {
  /** Null when a signal ended it. */
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
}

/** An object of the API server; what else is in it, each test knows for itself. */
export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly generation?: number;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly ownerReferences?: readonly { readonly kind: string; readonly name: string }[];
  };
  // biome-ignore lint/suspicious/noExplicitAny: tests read what they know the object to hold
  readonly [field: string]: any;
}

/** Where kubectl is too slow to be asked every 20 ms. */
const POLL_MILLISECONDS = 500;
/** For what a busy machine with two cores does within seconds. */
export const PATIENCE = 120_000;

/** Runs a program to its end, however it ends. */
export async function outcomeOf(program: string, args: readonly string[], input = ''): Promise<Outcome> {
  const child = spawn(program, args);
  let [output, errors] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    errors += text;
  });
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  const code = await new Promise<number | null>((resolve, reject) => child.on('close', resolve).on('error', reject));
  return { code, output, errors };
}

/** Runs a program; what it printed. @throws when it fails, with what it said */
export async function run(program: string, args: readonly string[], input = ''): Promise<string> {
  const { code, output, errors } = await outcomeOf(program, args, input);
  if (code !== 0) throw new Error(`${program} ${args.join(' ')}: ended with ${code}\n${output}${errors}`);
  return output;
}

/** kubectl as the cluster's admin. @throws when it fails, with what it said */
export async function kubectl(...args: readonly string[]): Promise<string> {
  return await run('kubectl', args);
}

/** Server-side apply. @throws when an object is refused */
export async function apply(...objects: readonly KubernetesObject[]): Promise<void> {
  const list = { apiVersion: 'v1', kind: 'List', items: objects };
  await run('kubectl', ['apply', '--server-side', '--force-conflicts', '-f', '-'], JSON.stringify(list));
}

/** One object; undefined when there is none. */
export async function find(kind: string, name: string, namespace?: string): Promise<KubernetesObject | undefined> {
  const found = await kubectl('get', kind, name, ...inNamespace(namespace), '--ignore-not-found', '-o', 'json');
  return found === '' ? undefined : (JSON.parse(found) as KubernetesObject);
}

/** One object. @throws when there is none */
export async function get(kind: string, name: string, namespace?: string): Promise<KubernetesObject> {
  const found = await find(kind, name, namespace);
  if (found === undefined) throw new Error(`there is no ${kind} ${name} in ${namespace ?? 'the cluster'}`);
  return found;
}

/** All objects of a kind that have these labels. */
export async function list(kind: string, namespace: string, selector = ''): Promise<readonly KubernetesObject[]> {
  const found = await kubectl('get', kind, ...inNamespace(namespace), '-l', selector, '-o', 'json');
  return (JSON.parse(found) as { items: KubernetesObject[] }).items;
}

/** The value of a key of a Secret. @throws when there is none */
export async function secretValue(namespace: string, name: string, key: string): Promise<string> {
  const { data } = await get('secret', name, namespace);
  const value: unknown = data?.[key];
  if (typeof value !== 'string') throw new Error(`Secret ${namespace}/${name} has no key ${key}`);
  return Buffer.from(value, 'base64').toString();
}

/** What selects the namespaces that tests made. */
export const OURS = 'grantry-e2e=true';
/** The same as `metadata.labels` has it. */
export const OURS_LABEL: Readonly<Record<string, string>> = Object.fromEntries([OURS.split('=')]);

const POD_SECURITY = 'pod-security.kubernetes.io/enforce';
/** The label of namespaces that take pods of the restricted Pod Security standard only. */
export const RESTRICTED = `${POD_SECURITY}=restricted`;

/** A new namespace of ours that takes pods of this Pod Security standard only. */
export async function createNamespace(
  name: string,
  standard: 'restricted' | 'baseline' = 'restricted',
): Promise<string> {
  const labels = { ...OURS_LABEL, [POD_SECURITY]: standard };
  await apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
  return name;
}

/** Deletes namespaces that may not be there, and waits until they are gone. */
export async function deleteNamespaces(...names: readonly string[]): Promise<void> {
  await kubectl('delete', 'namespace', ...names, '--ignore-not-found', `--timeout=${PATIENCE / 1000}s`);
}

/** `kubectl wait --for=condition=Ready`, of objects written `kind/name`. @throws with their conditions when one does not become it */
export async function waitReady(namespace: string, ...objects: readonly string[]): Promise<void> {
  await waitFor(namespace, 'condition=Ready', ...objects);
}

/** `kubectl wait --for=…`. */
export async function waitFor(namespace: string, condition: string, ...objects: readonly string[]): Promise<void> {
  await kubectl('wait', `--for=${condition}`, `--timeout=${PATIENCE / 1000}s`, '-n', namespace, ...objects);
}

/** Waits for what kubectl has to be asked for again and again. */
export async function eventually(what: string, holds: () => Promise<boolean>, limit = PATIENCE): Promise<void> {
  await until(what, holds, limit, POLL_MILLISECONDS);
}

/** Whether a user may do something, `kubectl auth can-i`: in a namespace, or in all. @param resource may be `kind/subresource` */
export async function canI(as: string, verb: string, resource: string, namespace?: string): Promise<boolean> {
  const where = namespace === undefined ? ['--all-namespaces'] : ['-n', namespace];
  const [kind = '', subresource] = resource.split('/');
  const what = [verb, kind, ...(subresource === undefined ? [] : ['--subresource', subresource])];
  const { output, errors } = await outcomeOf('kubectl', ['auth', 'can-i', ...what, '--as', as, ...where]);
  const answer = output.trim().split('\n').at(-1);
  if (answer === 'yes' || answer === 'no') return answer === 'yes';
  throw new Error(`kubectl auth can-i ${verb} ${resource}: ${output}${errors}`);
}

/** A GET of a port of a pod, through the API server. @throws when the answer is not a 2xx; the message has it */
export async function getFromPod(namespace: string, pod: string, port: number, path: string): Promise<string> {
  return await kubectl('get', '--raw', `/api/v1/namespaces/${namespace}/pods/${pod}:${port}/proxy${path}`);
}

function inNamespace(namespace: string | undefined): readonly string[] {
  return namespace === undefined ? [] : ['-n', namespace];
}
