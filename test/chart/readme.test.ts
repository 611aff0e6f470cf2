// The values that README sets for the install, and the guide for signing people in: the chart takes both together.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { render } from './helm.ts';

const ROOT = join(import.meta.dirname, '../..');
const README = readFileSync(join(ROOT, 'README.md'), 'utf8');
const GUIDE = readFileSync(join(ROOT, 'docs/guides/consumers.md'), 'utf8');
const VALUES = 'examples/consumers/values.yaml';

/** What `--set` of a command of README sets; the command may go on over lines. */
function settingsOf(command: string): readonly string[] {
  const [, words = ''] = new RegExp(`^${command} ((?:.*\\\\\\n)*.*)`, 'm').exec(README) ?? [];
  return [...words.matchAll(/--set (\S+)/g)].map(([, setting = '']) => setting);
}

it('the guide › The issuer and the people → an Ingress for the issuer, and token servers with the list of people', async () => {
  expect(GUIDE).toMatch(new RegExp(`^helm upgrade grantry .* --reuse-values .*--values ${VALUES}$`, 'm'));
  // Of what both say the upgrade counts.
  const kept = settingsOf('helm install grantry').filter((setting) => !setting.startsWith('issuer='));
  expect(kept).toContain('redis.dev.enabled=true');
  const objects = await render(['--values', join(ROOT, VALUES), ...kept.flatMap((setting) => ['--set', setting])]);

  const ingress = objects.find(({ kind }) => kind === 'Ingress');
  expect(ingress).toMatchObject({ spec: { ingressClassName: 'nginx', rules: [{ host: 'id.example.com' }] } });
  const people = parse(readFileSync(join(ROOT, 'examples/consumers/people.yaml'), 'utf8'));
  // Of this type and in this namespace the servers find it without a value of the chart.
  expect([people.type, people.metadata.namespace]).toEqual(['grantry.dev/users', 'grantry-system']);
});
