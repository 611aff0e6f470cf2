// The programs that tests sign in to, as `scripts/consumers/consumer-programs.mjs` builds or installs them at the first use.

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, it } from 'vitest';

const IS_CI = process.env.CI === 'true';
const SCRIPT = join(import.meta.dirname, '../../../scripts/consumers/consumer-programs.mjs');

/** As the script names them. */
type ConsumerName =
  | 'dex'
  | 'kubelogin'
  | 'oauth2-proxy'
  | 'argo-cd'
  | 'go-oidc'
  | 'spring-boot'
  | 'apache'
  | 'kubernetes';

/**
 * As `describe`, with what each program is started by; skipped where one cannot be had, unless CI demands it. The first use
 * may take minutes, which no limit of a test counts.
 */
export async function describeConsumers(
  names: readonly ConsumerName[],
  suite: (...programs: string[]) => void,
): Promise<void> {
  const title = names.join(' with ');
  const found: string[] = [];
  for (const name of names) {
    const { program, fault } = await find(name);
    if (program !== undefined) found.push(program);
    else if (IS_CI) return void describe(title, () => demand(fault));
    else return void describe.skip(`${title} (${fault.trim().split('\n').at(-1)})`, () => suite(...names));
  }
  describe(title, () => suite(...found));
}

function demand(fault: string): void {
  it('can be had', () => {
    throw new Error(fault);
  });
}

async function find(name: ConsumerName): Promise<{ program: string | undefined; fault: string }> {
  try {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [SCRIPT, name]);
    process.stderr.write(stderr);
    return { program: stdout.trim(), fault: '' };
  } catch (error) {
    const fault = String((error as { readonly stderr?: unknown }).stderr ?? error);
    process.stderr.write(fault);
    return { program: undefined, fault };
  }
}
