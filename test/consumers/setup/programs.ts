// The programs that tests sign in to, as `scripts/consumers/consumer-programs.mjs` builds or installs them at the first use.

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, it } from 'vitest';

const SCRIPT = join(import.meta.dirname, '../../../scripts/consumers/consumer-programs.mjs');

/** As the script names them. */
type ConsumerName = 'kubelogin' | 'oauth2-proxy' | 'argo-cd' | 'go-oidc' | 'spring-boot' | 'apache';

/**
 * As `describe`, with what the program is started by; skipped where it cannot be had, unless CI demands it. The first use may
 * take minutes, which no limit of a test counts.
 */
export async function describeConsumer(name: ConsumerName, suite: (program: string) => void): Promise<void> {
  const { program, fault } = await find(name);
  if (program !== undefined) describe(name, () => suite(program));
  else if (process.env.CI === 'true') {
    describe(name, () => {
      it('can be had', () => {
        throw new Error(fault);
      });
    });
  } else describe.skip(`${name} (it cannot be had)`, () => suite(''));
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
