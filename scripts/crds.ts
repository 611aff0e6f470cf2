// crds/, made from the schemas of src/admission/kinds/: `node scripts/crds.ts` writes the files, `--check` names those that
// are not as it would write them. Edit the fields there, never the files here.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Document, visit } from 'yaml';
import { z } from 'zod';
import { CLIENT_POLICY_CRD } from '../src/admission/kinds/client-policy.ts';
import type { KindDefinition } from '../src/admission/kinds/crd.ts';
import { IDENTITY_PROVIDER_CRD } from '../src/admission/kinds/identity-provider.ts';
import { API_VERSION, CEL, cel } from '../src/admission/kinds/manifest.ts';
import { OAUTH_CLIENT_CRD } from '../src/admission/kinds/oauth-client.ts';
import { PROTECTED_RESOURCE_CRD } from '../src/admission/kinds/protected-resource.ts';
import { SIGNING_KEY_CRD } from '../src/admission/kinds/signing-key.ts';

const ROOT = join(import.meta.dirname, '..');
const [GROUP = '', VERSION = ''] = API_VERSION.split('/');
const KINDS: Readonly<Record<string, KindDefinition>> = {
  'client-policy.ts': CLIENT_POLICY_CRD,
  'identity-provider.ts': IDENTITY_PROVIDER_CRD,
  'oauth-client.ts': OAUTH_CLIENT_CRD,
  'protected-resource.ts': PROTECTED_RESOURCE_CRD,
  'signing-key.ts': SIGNING_KEY_CRD,
};

type Schema = Readonly<Record<string, unknown>> & {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
};

function crdOf({ names, scope, description, columns, manifest, status, pending }: KindDefinition) {
  const { properties = {}, required = [] } = jsonSchemaOf(manifest);
  const { kind, plural, shortName } = names;
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${GROUP}`, annotations: { 'grantry.dev/version': version } },
    spec: {
      group: GROUP,
      scope,
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        shortNames: [shortName],
        categories: ['grantry'],
      },
      versions: [
        {
          name: VERSION,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: [
            ...columns.map(({ name, type = 'string', ...column }) => ({ name, type, ...column })),
            { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
          ],
          schema: {
            openAPIV3Schema: {
              type: 'object',
              description,
              ...(Array.isArray(required) && required.includes('spec') && { required: ['spec'] }),
              ...rulesOf(cel('size(self.metadata.name) <= 63', 'metadata.name has more than 63 characters')),
              properties: {
                apiVersion: { type: 'string', maxLength: 64, description: `Always ${API_VERSION}.` },
                kind: { type: 'string', maxLength: 64, description: `Always ${kind}.` },
                metadata: { type: 'object' },
                spec: structural(properties.spec ?? {}, 'spec'),
                status: {
                  ...structural({ ...jsonSchemaOf(status()), required: undefined }, 'status'),
                  default: { conditions: pending.map(pendingCondition) },
                },
              },
            },
          },
        },
      ],
    },
  };
}

function pendingCondition(type: string) {
  return {
    type,
    status: 'Unknown',
    reason: 'Pending',
    message: 'Waiting for the controller.',
    lastTransitionTime: '1970-01-01T00:00:00Z',
  };
}

function jsonSchemaOf(schema: z.ZodType): Schema {
  return z.toJSONSchema(schema, { target: 'openapi-3.0', io: 'input', reused: 'inline' }) as Schema;
}

/** What a field says in a structural schema, in the order in which it is written; any other keyword is an error. */
const KEYWORDS = [
  ...['type', 'description', 'default', 'enum', 'format', 'pattern', 'required'],
  ...['minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'maxItems', 'maxProperties'],
  ...['x-kubernetes-list-type', 'x-kubernetes-list-map-keys'],
];

/** The structural schema of one in JSON Schema, in which the fields have what their `.meta()` says as well. */
function structural(schema: Schema, path: string): Schema {
  const { properties, items, additionalProperties, default: fallback, pattern, fault, noDefault, ...said } = schema;
  const isNumber = said.type === 'number' && Array.isArray(said.enum);
  const fields = Object.entries(properties ?? {}).map(([name, field]) => [name, structural(field, `${path}.${name}`)]);
  const below = {
    ...(isSchema(items) && { items: structural(items, `${path}[]`) }),
    ...(isSchema(additionalProperties) && { additionalProperties: structural(additionalProperties, `${path}.*`) }),
    ...(fields.length > 0 && { properties: Object.fromEntries(fields) as Readonly<Record<string, Schema>> }),
  };
  const words = {
    ...said,
    ...(isNumber && { type: 'integer' }),
    // The bound of every integer of JavaScript.
    maximum: said.maximum === Number.MAX_SAFE_INTEGER ? undefined : said.maximum,
    default: noDefault === true || isNeedless(fallback, below.properties) ? undefined : fallback,
    // With a sentence of its own a pattern is a rule.
    pattern: fault === undefined ? pattern : undefined,
  };
  const form = fault === undefined ? {} : cel(`self.matches(r"${re2(String(pattern))}")`, String(fault));
  const unknown = Object.keys(words).filter((word) => !KEYWORDS.includes(word) && !word.startsWith(CEL));
  if (said.type === undefined) throw new Error(`${path}: has no type`);
  if (unknown.length > 0) throw new Error(`${path}: ${unknown.join(', ')} means nothing in a CRD`);
  const kept = KEYWORDS.map((word) => [word, (words as Schema)[word]]).filter(([, value]) => value !== undefined);
  return { ...Object.fromEntries(kept), ...rulesOf({ ...form, ...words }), ...below };
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null;
}

/** An empty list or map is as good as none, and so is an object, unless a field of it has a default. */
function isNeedless(fallback: unknown, fields: Readonly<Record<string, Schema>> = {}): boolean {
  const isEmpty = isSchema(fallback) && Object.keys(fallback).length === 0;
  return isEmpty && Object.values(fields).every((field) => field.default === undefined);
}

function rulesOf(words: Schema) {
  const rules = Object.entries(words).filter(([word]) => word.startsWith(CEL));
  if (rules.length === 0) return {};
  return { 'x-kubernetes-validations': rules.map(([word, rule]) => ({ rule, message: word.slice(CEL.length) })) };
}

/** A pattern of JavaScript as RE2, which the API server has, writes it: characters themselves, scripts without a prefix. */
function re2(pattern: string): string {
  if (pattern.includes('"')) throw new Error(`a quote ends the string of a rule: ${pattern}`);
  return pattern.replaceAll(
    /\\(?:u\{([0-9A-F]+)\}|u([0-9A-F]{4})|(p\{)sc=|(.))/gi,
    (whole, long, short, script, one) => {
      if (script !== undefined) return `\\${script}`;
      if (one === '/') return '/';
      return one === undefined ? String.fromCodePoint(Number.parseInt(long ?? short, 16)) : whole;
    },
  );
}

/** In ASCII: a pattern has characters that no reader of the file sees. kubectl reads YAML 1.1, in which y is no string. */
function yamlOf(value: unknown): string {
  const document = new Document(value, { version: '1.1', aliasDuplicateObjects: false });
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value === 'string' && /[^ -~]/.test(node.value)) node.type = 'QUOTE_DOUBLE';
    },
  });
  return document.toString({ lineWidth: 0 }).replaceAll(/[^\n -~]/gu, (character) => {
    const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase();
    return code.length > 4 ? `\\U${code.padStart(8, '0')}` : `\\u${code.padStart(4, '0')}`;
  });
}

const stale = Object.entries(KINDS).flatMap(([source, definition]) => {
  const file = join(ROOT, 'crds', `${definition.names.plural}.yaml`);
  const text = `# Made from src/admission/kinds/${source} by scripts/crds.ts.\n${yamlOf(crdOf(definition))}`;
  if (!process.argv.includes('--check')) writeFileSync(file, text);
  else if (readFileSync(file, 'utf8') !== text) return [file];
  return [];
});
if (stale.length > 0) {
  console.error(`not as src/admission/kinds/ says; run node scripts/crds.ts: ${stale.join(', ')}`);
  process.exitCode = 1;
}
