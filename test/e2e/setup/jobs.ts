// What a team runs: a Job of its own namespace that gets a token with the Secret that grantry wrote there.

import { apply, eventually, get, kubectl } from './kubectl.ts';
import { scriptPod } from './pods.ts';

export interface TokenJob {
  readonly namespace: string;
  readonly name: string;
  readonly secretName: string;
  /** Where the Secret has what. */
  readonly keys?: { readonly clientId: string; readonly clientSecret: string };
  readonly tokenUrl: string;
}

/** What a Job of {@link runTokenJob} printed. */
export interface JobReport {
  readonly status: number;
  /** Of the token; the body of a refusal. */
  readonly claims: Readonly<Record<string, unknown>>;
}

/** Runs a Job that gets one token. @throws with its last words when it fails */
export async function runTokenJob({ namespace, name, secretName, keys, tokenUrl }: TokenJob): Promise<JobReport> {
  const { clientId = 'client-id', clientSecret = 'client-secret' } = keys ?? {};
  const environment = { TOKEN_URL: tokenUrl, ID_KEY: clientId, SECRET_KEY: clientSecret };
  const spec = await scriptPod({ namespace, name, script: 'get-token.mts', secretName, environment });
  await apply({
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { namespace, name },
    spec: { backoffLimit: 0, template: { spec } },
  });
  let failed = false;
  await eventually(`Job ${namespace}/${name} ends`, async () => {
    const { status } = await get('job', name, namespace);
    failed = status?.failed === 1;
    return failed || status?.succeeded === 1;
  });
  const printed = await kubectl('logs', '-n', namespace, `job/${name}`);
  if (failed) throw new Error(`Job ${namespace}/${name} failed: ${printed}`);
  return JSON.parse(printed.trim().split('\n').at(-1) ?? '') as JobReport;
}
