// The alerts and the dashboard of the chart: Prometheus takes them, and they ask for nothing that grantry does not measure.

import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { ControllerMetrics } from '../../src/http/metrics/controller-metrics.ts';
import { Metrics } from '../../src/http/metrics/metrics.ts';
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
  return text.match(/\b(?:grantry|kube)_\w+/g) ?? [];
}

/** Series of kube-state-metrics, with the labels by which the alerts select them. */
const OF_KUBERNETES = ['kube_pod_container_status_restarts_total', 'kube_pod_container_status_last_terminated_reason'];

/** A file with the alerts, and one beside it with more for promtool. */
async function filesFor(text: (rulesFile: string) => object): Promise<{ rules: string; tests: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'grantry-alerts-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const files = { rules: join(folder, 'rules.yaml'), tests: join(folder, 'tests.yaml') };
  writeFileSync(files.rules, stringify({ groups: await alertGroups() }));
  writeFileSync(files.tests, stringify(text(files.rules)));
  return files;
}

/** Of one object, at the longest distance between two attempts. */
const EVERY_FIVE_MINUTES = Array.from({ length: 13 }, (_, count) => `${count}x4`).join(' ');
const EVERY_TEN_MINUTES = Array.from({ length: 7 }, (_, count) => `${count}x9`).join(' ');

/** Series of two servers and a controller that are well, one value a minute: a memory limit was reached long ago, and a restart now had another cause. */
const WELL: Readonly<Record<string, string>> = {
  ...both('refresh_reuse_detected_total', '0x60'),
  ...both('refresh_retried_elsewhere_total', '0x60'),
  ...both('code_replayed_total', '0x60'),
  ...both('state_forged_total', '0x60'),
  ...both('registry_staleness_seconds', '30x60'),
  ...both('store_up', '1x60'),
  ...both('users_last_reload_successful', '1x60'),
  ...both('users_secrets_faulty', '0x60'),
  ...both('logout_deliveries_total', '0x60', ', outcome="dead_letter"'),
  ...both('logout_deliveries_total', '0+1x60', ', outcome="delivered"'),
  ...both('signing_key_next_rotation_seconds', '600-60x60'),
  ...both('signing_key_age_seconds', '60+60x60'),
  ...both('tokens_issued_total', '0+600x60'),
  ...both('token_errors_total', '0+60x60', ', endpoint="token", error="invalid_client"'),
  ...both('registry_clients', '7x60', ', state="admitted"'),
  ...both('process_start_time_seconds', '1000x40 1600x20'),
  ...ofController('lease_held', '1x60'),
  ...ofController('work_queue_depth', '500x10 0x50'),
  ...ofController('reconcile_total', EVERY_TEN_MINUTES, ', kind="OAuthClient", result="failed"'),
  ...ofController('reconcile_total', '0+60x60', ', kind="OAuthClient", result="done"'),
  ...ofContainer('server', 'restarts_total', '1x60'),
  ...ofContainer('server', 'last_terminated_reason', '1x60', ', reason="OOMKilled"'),
  ...ofContainer('controller', 'restarts_total', '0x50 1x10'),
  ...ofContainer('controller', 'last_terminated_reason', '_x50 1x10', ', reason="Error"'),
};

function ofController(name: string, values: string, labels = ''): Record<string, string> {
  const place = 'job="grantry-system/grantry-controller", namespace="grantry-system", pod="c"';
  return { [`grantry_${name}{${place}${labels}}`]: values };
}

/** As kube-state-metrics reports a container. */
function ofContainer(container: string, name: string, values: string, labels = ''): Record<string, string> {
  const place = `namespace="grantry-system", pod="grantry-${container}-5c4f-x", container="${container}"`;
  return { [`kube_pod_container_status_${name}{${place}${labels}}`]: values };
}

function both(name: string, values: string, labels = ''): Record<string, string> {
  const series = (pod: string) =>
    `grantry_${name}{job="grantry-admin", namespace="grantry-system", pod="${pod}"${labels}}`;
  return { [series('a')]: values, [series('b')]: values };
}

const ILL: readonly (readonly [string, string, string])[] = [
  ['GrantryRefreshTokenReuse', 'refresh_reuse_detected_total', '0x50 1x10'],
  ['GrantryRefreshTokenRetriedElsewhere', 'refresh_retried_elsewhere_total', '0x50 1x10'],
  ['GrantryCodeReplayed', 'code_replayed_total', '0x50 1x10'],
  ['GrantryStateForged', 'state_forged_total', '0x50 1x10'],
  ['GrantryRegistryStale', 'registry_staleness_seconds', '30x30 60+60x30'],
  ['GrantryStoreDown', 'store_up', '1x40 0x20'],
  ['GrantryUsersFileFaulty', 'users_last_reload_successful', '1x40 0x20'],
  ['GrantryUsersSecretsFaulty', 'users_secrets_faulty', '0x40 2x20'],
  ['GrantryLogoutGivenUp', 'logout_deliveries_total', '0x50 1x10'],
  ['GrantrySigningKeyRotationOverdue', 'signing_key_next_rotation_seconds', '-4000-60x60'],
  ['GrantryNoSigningKey', 'signing_key_age_seconds', '60+60x30 stale'],
  ['GrantryHighDenialRate', 'token_errors_total', '0+6000x60'],
  ['GrantryReplicaOutOfSync', 'registry_clients', '8x60'],
  ['GrantryNoLeader', 'lease_held', '1x30 0x30'],
  ['GrantryReconcileFailing', 'reconcile_total', EVERY_FIVE_MINUTES],
  ['GrantryWorkQueueDeep', 'work_queue_depth', '101x60'],
  ['GrantryRestarting', 'process_start_time_seconds', '1000x40 1600x5 1700x5 1800x9'],
  ['GrantryOutOfMemory', 'restarts_total', '1x50 2x10'],
];

describe.skipIf(!existsSync(PROMTOOL))('the alerts', () => {
  it('pass promtool', async () => {
    const { rules } = await filesFor(() => ({}));
    const found = (await alertGroups()).flatMap((group) => group.rules).length;
    expect(execFileSync(PROMTOOL, ['check', 'rules', rules], { encoding: 'utf8' })).toContain(`${found} rules found`);
  });

  it.each<readonly [string, string, string]>([['nothing', '', ''], ...ILL])(
    'say after an hour, of what happened: %s',
    async (wanted, name, values) => {
      const series = Object.entries(WELL).map(([key, well]) => {
        // Of what only all replicas together can lack, all lack it; else one of them.
        const isIll =
          new RegExp(`_${name}\\{(?!.*"(?:done|controller|delivered)")`).test(key) &&
          (wanted === 'GrantryNoSigningKey' || !key.includes('pod="b"'));
        return { series: key, values: isIll && name !== '' ? values : well };
      });
      const { tests } = await filesFor((rulesFile) => ({
        rule_files: [rulesFile],
        tests: [
          {
            interval: '1m',
            input_series: series,
            promql_expr_test: ILL.map(([alert]) => ({
              expr: `count(ALERTS{alertname="${alert}", alertstate="firing"})`,
              eval_time: '1h',
              exp_samples: alert === wanted ? [{ value: 1, labels: '{}' }] : [],
            })),
          },
        ],
      }));
      const { status, stdout, stderr } = spawnSync(PROMTOOL, ['test', 'rules', tests], { encoding: 'utf8' });
      expect([status, status === 0 ? '' : stdout + stderr]).toEqual([0, '']);
    },
  );
});

it('the alerts ask for series that grantry has, of this install alone', async () => {
  const [names, groups] = await Promise.all([measured(), alertGroups()]);
  for (const { alert, expr, labels } of groups.flatMap(({ rules }) => rules)) {
    const asked = metricsIn(expr);
    const unknown = asked.filter((name) => !names.has(name) && !OF_KUBERNETES.includes(name));
    expect([alert, asked.length > 0, unknown]).toEqual([alert, true, []]);
    expect(expr.match(/namespace="grantry-system"/g)?.length).toBe(asked.length);
    expect(labels).toMatchObject({ severity: expect.stringMatching(/^(warning|critical)$/), team: 'identity' });
  }
});

it('an alert of a first increase → its counter begins with 0', async () => {
  const server = new Metrics({ clients: () => 0, logDropped: () => 0, processMetrics: true, followed });
  const samples = (await server.text()).split('\n');
  const exprs = (await alertGroups()).flatMap(({ rules }) => rules.map(({ expr }) => expr));
  const first = exprs.flatMap((expr) => [...expr.matchAll(/^sum\(increase\((\w+)\{(.*)\}\[10m\]\)\) > 0$/g)]);
  expect(first.length).toBeGreaterThanOrEqual(5);
  for (const [, name = '', selector = ''] of first) {
    const own = selector.split(', ').filter((label) => !/^(job|namespace)=/.test(label));
    expect(samples).toContain(own.length === 0 ? `${name} 0` : `${name}{${own.join(',')}} 0`);
  }
});

it('there is an alert for each thing that the operator has to know', async () => {
  const alerts = (await alertGroups()).flatMap(({ rules }) => rules.map(({ alert }) => alert));
  expect(alerts.sort()).toEqual(
    [
      ...[
        'GrantryCodeReplayed',
        'GrantryRefreshTokenRetriedElsewhere',
        'GrantryRefreshTokenReuse',
        'GrantryHighDenialRate',
        'GrantryStateForged',
      ],
      ...['GrantryRegistryStale', 'GrantryReplicaOutOfSync', 'GrantryStoreDown', 'GrantryUsersFileFaulty'],
      ...['GrantryLogoutGivenUp', 'GrantryUsersSecretsFaulty'],
      ...['GrantryNoSigningKey', 'GrantrySigningKeyRotationOverdue', 'GrantryNoLeader'],
      ...['GrantryReconcileFailing', 'GrantryWorkQueueDeep', 'GrantryRestarting', 'GrantryOutOfMemory'],
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
