// Holds crds/ to the schemas it is made from, to what a structural schema should have, and the reference pages to crds/.
// That both accept the same values is proven against an API server, in test/cluster/.

import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { BASELINE } from '../../../src/admission/kinds/client-policy.ts';
import { formatDuration } from '../../../src/admission/kinds/duration.ts';

const ROOT = join(import.meta.dirname, '../../..');
interface CrdSchema {
  readonly type: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: unknown;
  readonly format?: string;
  readonly pattern?: string;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, CrdSchema>>;
  readonly additionalProperties?: CrdSchema;
  readonly items?: CrdSchema;
  readonly 'x-kubernetes-list-type'?: string;
  readonly 'x-kubernetes-validations'?: readonly { readonly rule: string }[];
}

interface PrinterColumn {
  readonly name: string;
  readonly jsonPath: string;
  readonly priority?: number;
}

const texts = new Map(
  globSync('crds/*.yaml', { cwd: ROOT }).map((file) => [file, readFileSync(join(ROOT, file), 'utf8')] as const),
);
const schemas = new Map(
  [...texts.values()].map((text) => {
    // kubectl reads YAML 1.1, in which y and n are no strings.
    const { spec } = parse(text, { version: '1.1' });
    return [spec.names.kind as string, spec.versions[0].schema.openAPIV3Schema as CrdSchema] as const;
  }),
);

/** Every schema below one, with its path. */
function nodesOf(schema: CrdSchema, path: string): readonly { readonly path: string; readonly schema: CrdSchema }[] {
  return [
    { path, schema },
    ...Object.entries(schema.properties ?? {}).flatMap(([name, child]) => nodesOf(child, `${path}.${name}`)),
    ...(schema.items === undefined ? [] : nodesOf(schema.items, `${path}[]`)),
    ...(schema.additionalProperties === undefined ? [] : nodesOf(schema.additionalProperties, `${path}.*`)),
  ];
}

describe.each([...schemas])('the CRD of %s', (kind, root) => {
  const nodes = nodesOf(root, kind);
  const pathsWhere = (holds: (schema: CrdSchema) => boolean) =>
    nodes.filter(({ schema }) => holds(schema)).map(({ path }) => path);

  it('bounds every string, list and map, from which the cost of its rules is reckoned', () => {
    const isUnbounded = ({ type, enum: words, maxLength, maxItems, maxProperties, additionalProperties }: CrdSchema) =>
      (type === 'string' && words === undefined && maxLength === undefined) ||
      (type === 'array' && maxItems === undefined) ||
      (additionalProperties !== undefined && maxProperties === undefined);
    expect(pathsWhere(isUnbounded)).toEqual([]);
  });

  it('gives every field one type and no place for fields that it does not have', () => {
    expect(pathsWhere(({ type }) => !['object', 'array', 'string', 'integer', 'boolean'].includes(type))).toEqual([]);
    expect(
      pathsWhere((schema) => Object.keys(schema).some((word) => /int-or-string|preserve-unknown|embedded/.test(word))),
    ).toEqual([]);
  });

  it('says how each list is merged', () => {
    expect(pathsWhere((schema) => schema.type === 'array' && schema['x-kubernetes-list-type'] === undefined)).toEqual(
      [],
    );
  });

  it('describes every field', () => {
    const described = nodes.filter(({ path }) => !/(\[\]|\.\*|\.metadata)$/.test(path));
    expect(
      described.filter(({ schema }) => !/^\S.*\.$/s.test(schema.description ?? '')).map(({ path }) => path),
    ).toEqual([]);
  });

  it('says in a sentence how a string of a manifest is written, not by a pattern', () => {
    expect(pathsWhere(({ pattern }) => pattern !== undefined).filter((path) => path.includes('.spec'))).toEqual([]);
  });

  it('has rules that Kubernetes 1.29 understands and that stay within their budget', () => {
    const rules = nodes.flatMap(({ schema }) => (schema['x-kubernetes-validations'] ?? []).map(({ rule }) => rule));
    expect(rules.length).toBeGreaterThan(1);
    // What stands in quotes is a pattern.
    const called = rules
      .map((rule) => rule.replaceAll(/r"[^"]*"/g, ''))
      .flatMap((rule) => [...rule.matchAll(/(\w+)\(/g)].map(([, name]) => name));
    const allowed = ['contains', 'matches', 'size', 'has', 'all', 'duration'];
    expect(called.filter((name) => name === undefined || !allowed.includes(name))).toEqual([]);
    expect(
      pathsWhere(({ format }) => format !== undefined && !['date-time', 'int32', 'int64'].includes(format)),
    ).toEqual([]);
  });
});

it.each([...texts])('%s → kubectl prints Ready, Reason and Age, also without -o wide', (_, text) => {
  const columns = parse(text).spec.versions[0].additionalPrinterColumns as readonly PrinterColumn[];
  const shown = columns.filter(({ priority }) => priority === undefined);
  expect(shown.map(({ name }) => name)).toEqual(expect.arrayContaining(['Ready', 'Reason', 'Age']));
  const ready = '.status.conditions[?(@.type=="Ready")]';
  const pathOf = (name: string) => shown.find((column) => column.name === name)?.jsonPath;
  expect([pathOf('Ready'), pathOf('Reason')]).toEqual([`${ready}.status`, `${ready}.reason`]);
});

it('the CRDs hold no field that is newer than Kubernetes 1.29', () => {
  for (const text of texts.values()) expect(text).not.toMatch(/optionalOldSelf|selectableFields|reason: Field/);
});

it('the policy CRD says what the baseline permits', () => {
  const { allow, limits } = schemas.get('ClientPolicy')?.properties?.spec?.properties ?? {};
  const listed = (values: readonly string[]) => {
    if (values.length === 0) return 'none';
    return values.join() === '**' ? 'all' : values.join(', ');
  };
  for (const [name, value] of Object.entries(BASELINE.allow)) {
    if (typeof value === 'boolean') expect(allow?.properties?.[name]?.default, name).toBe(value);
    else expect(allow?.properties?.[name]?.description, name).toContain(`Baseline: ${listed(value)}.`);
  }
  for (const [name, value] of Object.entries(BASELINE.limits)) {
    const amount = Number(value);
    const written = name === 'maxState' ? `${amount / 2 ** 20}Mi` : String(value);
    const said = name.endsWith('Lifetime') ? formatDuration(amount) : written;
    if (typeof value === 'boolean') expect(limits?.properties?.[name]?.default, name).toBe(value);
    else expect(limits?.properties?.[name]?.description, name).toContain(`Baseline: ${said}.`);
  }
});

it('crds/ is what the schemas say', () => {
  const script = join(ROOT, 'scripts/crds.ts');
  execFileSync(process.execPath, [script, '--check'], { stdio: ['ignore', 'ignore', 'inherit'] });
});

it('the reference pages are what crds/ says', () => {
  const script = join(ROOT, 'scripts/documents/crd-reference.mjs');
  execFileSync(process.execPath, [script, '--check'], { stdio: ['ignore', 'ignore', 'inherit'] });
});
