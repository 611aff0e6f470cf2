// What in charts/grantry has to agree with the rest of the project.

import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { readSettings, variableReference } from '../src/processes/config/config.ts';

const ROOT = join(import.meta.dirname, '..');
const CHART = join(ROOT, 'charts/grantry');

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: unknown;
  readonly definitions?: Readonly<Record<string, Schema>>;
}

const values = parse(readFileSync(join(CHART, 'values.yaml'), 'utf8'));
const schema: Schema = JSON.parse(readFileSync(join(CHART, 'values.schema.json'), 'utf8'));

/** The variable that a key of `config` sets. */
function variableOf(key: string): string {
  return `GRANTRY_${key.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

/** A value of `config` as the template writes it. */
function textOf(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  return String(value);
}

describe('the chart', () => {
  it('has the CRDs of crds/ and the README of its values', () => {
    execFileSync(process.execPath, [join(ROOT, 'scripts/chart.mjs'), '--check'], { stdio: 'pipe' });
  });

  it('given a kind of crds/ → the guide has the quota for it, or says that no tenant creates it', () => {
    const guide = readFileSync(join(ROOT, 'docs/guides/kubernetes.md'), 'utf8');
    const advice = guide.slice(guide.indexOf('A policy cannot limit'), guide.indexOf('## What status says'));
    const [, edit] = parseAllDocuments(readFileSync(join(CHART, 'rbac/tenants.yaml'), 'utf8')).map((each) =>
      each.toJS(),
    );
    const created: readonly string[] = edit.rules[0].resources;
    expect(created).toContain('oauthclients');
    for (const file of globSync('crds/*.yaml', { cwd: ROOT })) {
      const { kind, plural } = parse(readFileSync(join(ROOT, file), 'utf8')).spec.names;
      expect(advice).toContain(created.includes(plural) ? `\`count/${plural}.grantry.dev\`` : kind);
    }
  });

  it('has the version of the package, and so have the CRDs', () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    const chart = parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8'));
    const crds = ['clientpolicies', 'identityproviders', 'oauthclients', 'protectedresources', 'signingkeys'].map(
      (kind) =>
        parse(readFileSync(join(ROOT, `crds/${kind}.yaml`), 'utf8')).metadata.annotations['grantry.dev/version'],
    );
    expect([chart.version, chart.appVersion, ...crds]).toEqual(Array.from({ length: 7 }, () => version));
  });

  it('has the defaults of the programs, but for the address they listen on', () => {
    const defaults = Object.fromEntries(variableReference().map(({ name, default: text }) => [name, text]));
    for (const [key, value] of Object.entries(values.config)) {
      const expected = key === 'host' ? '0.0.0.0' : defaults[variableOf(key)];
      expect([key, textOf(value)]).toEqual([key, expected]);
    }
    expect([values.redis.prefix, textOf(values.redis.strict), values.className]).toEqual([
      defaults.GRANTRY_REDIS_PREFIX,
      defaults.GRANTRY_REDIS_STRICT,
      defaults.GRANTRY_CLASS,
    ]);
  });

  it('allows in `config` what the programs allow', () => {
    const samples: Readonly<Record<string, unknown>> = values.config;
    const environment = Object.fromEntries(
      Object.entries(samples).map(([key, value]) => [variableOf(key), textOf(value)]),
    );
    expect(readSettings({ environment })).toMatchObject({ port: 9400, rateLimits: true, drainDelaySeconds: 5 });
  });

  it('has a schema that knows exactly the values there are', () => {
    expect(faults(values, schema)).toEqual([]);
    expect(faults({ ...values, issuers: '' }, schema)).toEqual(['issuers: not in the schema']);
    const { issuer, ...others } = values;
    expect([issuer, faults(others, schema)]).toEqual(['', ['issuer: not in the values']]);
  });
});

/** Where values and schema do not have the same keys. */
function faults(value: unknown, { $ref, ...own }: Schema, path = ''): readonly string[] {
  const { properties, additionalProperties } = $ref === undefined ? own : (schema.definitions?.[$ref.slice(14)] ?? own);
  if (properties === undefined || typeof value !== 'object' || value === null) return [];
  if (additionalProperties !== false) return [`${path}: takes anything`];
  const inValues = Object.keys(value);
  // `enabled` at the top is for parent charts.
  const inSchema = Object.keys(properties).filter((key) => path !== '' || key !== 'enabled');
  return [
    ...inValues.filter((key) => properties[key] === undefined).map((key) => `${path}${key}: not in the schema`),
    ...inSchema.filter((key) => !inValues.includes(key)).map((key) => `${path}${key}: not in the values`),
    ...Object.entries(value).flatMap(([key, below]) => faults(below, properties[key] ?? {}, `${path}${key}.`)),
  ];
}
