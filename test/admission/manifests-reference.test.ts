// Holds docs/reference/manifests.md to the schemas: it names every field below `spec` and no other, with its default.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { BASELINE, CLIENT_POLICY } from '../../src/admission/client-policy.ts';
import { formatDuration } from '../../src/admission/duration.ts';
import { OAUTH_CLIENT } from '../../src/admission/oauth-client.ts';
import { SIGNING_KEY } from '../../src/admission/signing-key.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/reference/manifests.md'), 'utf8');

/** What the third column of each field says, by the path of the field below `spec`. */
function documented(kind: string): ReadonlyMap<string, string> {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${kind}\n`)) ?? '';
  const rows = [...section.matchAll(/^\| (`[^|]*`) \| [^|]+ \| ([^|]+) \| [^|]+ \|$/gm)];
  return new Map(
    rows.flatMap(([, fields = '', fallback = '']) =>
      [...fields.matchAll(/`([^`]+)`/g)].map(([, field = '']) => [field, fallback] as const),
    ),
  );
}

interface Field {
  readonly path: string;
  /** What an absent field becomes, as the page writes it. */
  readonly fallback: string;
}

/** The fields below a schema that hold no further ones. */
function fieldsOf(schema: unknown, path: string, fallback = 'required'): readonly Field[] {
  if (schema instanceof z.ZodObject) {
    const prefix = path === '' ? '' : `${path}.`;
    return Object.entries(schema.shape).flatMap(([name, member]) => fieldsOf(member, `${prefix}${name}`));
  }
  if (schema instanceof z.ZodOptional) return fieldsOf(schema.unwrap(), path, 'none');
  if (schema instanceof z.ZodPrefault) return fieldsOf(schema.unwrap(), path);
  if (schema instanceof z.ZodDefault) return fieldsOf(schema.unwrap(), path, written(schema.def.defaultValue, schema));
  // An object is a transformation into one; a duration or the settings of tokens are transformed out of their form.
  if (schema instanceof z.ZodPipe) {
    return fieldsOf(schema.def.in instanceof z.ZodTransform ? schema.def.out : schema.def.in, path, fallback);
  }
  if (schema instanceof z.ZodArray && fieldsOf(schema.element, '').some((field) => field.path !== '')) {
    return fieldsOf(schema.element, `${path}[]`);
  }
  return [{ path, fallback }];
}

function written(value: unknown, schema: z.ZodDefault | undefined): string {
  if (typeof value === 'number' && schema?.unwrap() instanceof z.ZodPipe) return `\`${formatDuration(value)}\``;
  if (Array.isArray(value)) return value.length === 0 ? 'empty' : value.map((item) => `\`${item}\``).join(', ');
  return typeof value === 'object' ? 'empty' : `\`${value}\``;
}

function specOf(schema: unknown): unknown {
  const object = schema instanceof z.ZodPipe ? schema.def.out : schema;
  return object instanceof z.ZodObject ? object.shape.spec : undefined;
}

const KINDS = [
  ['OAuthClient', OAUTH_CLIENT.refuse],
  ['SigningKey', SIGNING_KEY.refuse],
  ['ClientPolicy', CLIENT_POLICY.refuse],
] as const;

describe.each(KINDS)('the reference of %s', (kind, schema) => {
  const fields = fieldsOf(specOf(schema), '');

  it('names every field of the schema and no other', () => {
    expect(fields.length).toBeGreaterThan(10);
    expect([...documented(kind).keys()].sort()).toEqual(fields.map(({ path }) => path).sort());
  });

  it('gives the default of every field', () => {
    // One row stands for all members of a JWK, and the lists and limits of a policy fall back on the baseline.
    const single = fields.filter(({ path }) => !/\.jwks\.|^(allow|limits)\./.test(path));
    const page = documented(kind);
    expect(single.map(({ path }) => [path, page.get(path)])).toEqual(
      single.map(({ path, fallback }) => [path, fallback]),
    );
  });
});

it('the reference gives what the baseline permits', () => {
  const rows = documented('ClientPolicy');
  const baseline = [
    ...Object.entries(BASELINE.allow).map(([name, value]) => [`allow.${name}`, written(value, undefined)]),
    ...Object.entries(BASELINE.limits).map(([name, value]) => [
      `limits.${name}`,
      name.endsWith('Lifetime') ? `\`${formatDuration(Number(value))}\`` : written(value, undefined),
    ]),
  ];
  expect(baseline.map(([path = '']) => [path, rows.get(path)])).toEqual(baseline);
});
