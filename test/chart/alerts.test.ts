// The alerts and the dashboard of the chart: Prometheus takes them, and they ask for nothing that grantry does not measure.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { ControllerMetrics } from '../../src/http/controller-metrics.ts';
import { Metrics } from '../../src/http/metrics.ts';
import { ASSETS, CHART, CI_VALUES, render } from './helm.ts';

const PROMTOOL = join(ASSETS, 'promtool');
const followed = { now: () => 0, lastProgress: () => 0, signingKey: () => undefined };

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Readonly<Record<string, string>>;
}

interface Group {
  readonly name: string;
  readonly rules: readonly Alert[];
}

async function alertGroups(): Promise<readonly Group[]> {
  const objects = await render(['--values', CI_VALUES.monitoring ?? '']);
  const rule = objects.find(({ kind }) => kind === 'PrometheusRule');
  return (rule as unknown as { spec: { groups: Group[] } }).spec.groups;
}

/** Every series of both programs, by name. */
async function measured(): Promise<ReadonlySet<string>> {
  const server = new Metrics({ clients: () => 0, logDropped: () => 0, processMetrics: true, followed });
  const controller = new ControllerMetrics({ isLeading: () => true, queued: () => 0, followed });
  const lines = `${await server.text()}\n${await controller.text()}`.split('\n');
  const series = lines
    .map((line) => /^# TYPE (\S+) (\S+)/.exec(line) ?? [])
    .flatMap(([, name, type]) =>
      type === 'histogram' ? ['_bucket', '_count', '_sum'].map((end) => name + end) : [name],
    );
  return new Set(series.filter((name) => name !== undefined));
}

function metricsIn(text: string): readonly string[] {
  return text.match(/\bgrantry_\w+/g) ?? [];
}

it.skipIf(!existsSync(PROMTOOL))('the alerts pass promtool', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'grantry-alerts-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'rules.yaml');
  const groups = await alertGroups();
  writeFileSync(file, stringify({ groups }));
  const rules = groups.flatMap((group) => group.rules);
  expect(execFileSync(PROMTOOL, ['check', 'rules', file], { encoding: 'utf8' })).toContain(
    `${rules.length} rules found`,
  );
});

it('the alerts ask for series that grantry has, of this install alone', async () => {
  const [names, groups] = await Promise.all([measured(), alertGroups()]);
  for (const { alert, expr, labels } of groups.flatMap(({ rules }) => rules)) {
    const asked = metricsIn(expr);
    expect([alert, asked.length > 0, asked.filter((name) => !names.has(name))]).toEqual([alert, true, []]);
    expect(expr.match(/namespace="grantry-system"/g)?.length).toBe(asked.length);
    expect(labels).toMatchObject({ severity: expect.stringMatching(/^(warning|critical)$/), team: 'identity' });
  }
});

it('there is an alert for each thing that the operator has to know', async () => {
  const alerts = (await alertGroups()).flatMap(({ rules }) => rules.map(({ alert }) => alert));
  expect(alerts.sort()).toEqual(
    [
      ...['GrantryCodeReplayed', 'GrantryRefreshTokenReuse', 'GrantryHighDenialRate'],
      ...['GrantryRegistryStale', 'GrantryReplicaOutOfSync', 'GrantryStoreDown'],
      ...['GrantryNoSigningKey', 'GrantrySigningKeyRotationOverdue', 'GrantryNoLeader'],
    ].sort(),
  );
});

it('the dashboard shows every metric of the two programs, and none that they do not have', async () => {
  const text = readFileSync(join(CHART, 'files/dashboard.json'), 'utf8');
  const names = await measured();
  const shown = new Set(metricsIn(text));
  expect([...shown].filter((name) => !names.has(name))).toEqual([]);
  const stem = (name: string) => name.replace(/_(bucket|count|sum)$/, '');
  const own = [...names].filter((name) => !/^grantry_(process|nodejs)_/.test(name)).map(stem);
  const stems = new Set([...shown].map(stem));
  // The age says the same in a form that can be read.
  const left = new Set(own.filter((name) => !stems.has(name) && name !== 'grantry_registry_last_progress_seconds'));
  expect([...left]).toEqual([]);
  const objects = await render(['--values', CI_VALUES.monitoring ?? '']);
  const map = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'grantry-dashboard');
  expect(JSON.parse((map?.data as Record<string, string> | undefined)?.['grantry.json'] ?? '')).toEqual(
    JSON.parse(text),
  );
});
