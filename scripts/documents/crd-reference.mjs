// The reference page of each kind, made from what crds/ says: `node scripts/documents/crd-reference.mjs` writes them,
// `--check` names those that are not as it would write them. Edit the descriptions in src/admission/kinds/, never the pages.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

const ROOT = join(import.meta.dirname, '../..');

/** What readers call a string of a pattern, by how the pattern begins. */
const PATTERN_NAMES = [
  ['^([0-9]{1,5}h', 'duration'],
  ['^([0-9]{4}-', 'time'],
  ['^https?://(([A-Z', 'web address'],
  ['^https?://((([a-z', 'origin'],
  ['^[a-z0-9]([a-z0-9-]*[a-z0-9])?$', 'name'],
  ['^[a-z0-9]([a-z0-9-]*[a-z0-9])?(', 'name'],
  ['^\\.?[A-Za-z0-9_-]', 'key of a Secret'],
  ['^[A-Za-z0-9_-]{43}$', 'key id'],
  ['^(\\{|', 'glob'],
  ['^(https://((', 'issuer'],
  ['^([^/\\p{Cc}]', 'claim or JSON Pointer'],
  ['^([a-z0-9]([a-z0-9-]*[a-z0-9])?\\.)+', 'domain'],
  ['^(([a-z0-9-]+', 'host'],
  ['^(\\*|[a-z0-9]', 'namespace or `*`'],
];

function typeOf(schema) {
  if (schema.enum !== undefined) return schema.enum.map((value) => `\`${value}\``).join(', ');
  switch (schema.type) {
    case 'boolean':
      return 'true or false';
    case 'integer':
      return schema.maximum === undefined ? 'number' : `number, up to ${schema.maximum}`;
    case 'array':
      return schema.items.type === 'object'
        ? `list, up to ${schema.maxItems}`
        : `${typeOf(schema.items)}; up to ${schema.maxItems}`;
    case 'object':
      return schema.additionalProperties === undefined ? 'object' : `map, up to ${schema.maxProperties}`;
    default:
      return stringType(schema);
  }
}

function stringType({ 'x-kubernetes-validations': rules = [], format, maxLength }) {
  if (format === 'date-time') return 'time';
  const pattern = rules.map(({ rule }) => /^self\.matches\(r"(.*)"\)$/.exec(rule)?.[1]).find(Boolean) ?? '';
  return PATTERN_NAMES.find(([start]) => pattern.startsWith(start))?.[1] ?? `text, up to ${maxLength}`;
}

function defaultOf(schema, isRequired) {
  if (isRequired) return 'required';
  if (schema.type === 'object' && schema.additionalProperties === undefined) return '';
  if (schema.default !== undefined)
    return [schema.default]
      .flat()
      .map((value) => `\`${value}\``)
      .join(', ');
  return schema.type === 'array' || schema.type === 'object' ? 'empty' : 'none';
}

/** One line as it stands in a cell. */
function cell(text) {
  return text.trim().replaceAll(/\s+/g, ' ').replaceAll(/[*|<]/g, '\\$&');
}

/** Every field below an object, outside in. */
function fieldsBelow(schema, prefix = '') {
  return Object.entries(schema.properties ?? {}).flatMap(([name, child]) => {
    const path = `${prefix}${name}`;
    const field = { path, schema: child, isRequired: schema.required?.includes(name) ?? false };
    const isList = child.items?.properties !== undefined;
    return [field, ...fieldsBelow(isList ? child.items : child, isList ? `${path}[].` : `${path}.`)];
  });
}

function rulesBelow(schema, path) {
  const below = Object.entries(schema.properties ?? {}).flatMap(([name, child]) =>
    rulesBelow(child, `${path}.${name}`),
  );
  const items = schema.items === undefined ? [] : rulesBelow(schema.items, `${path}[]`);
  // How a value is written is its type in the table.
  const rules = (schema['x-kubernetes-validations'] ?? []).filter(({ rule }) => !rule.startsWith('self.matches('));
  return [...rules.map(({ message }) => ({ path, message })), ...below, ...items];
}

function page({ names, scope, versions: [version] }) {
  const schema = version.schema.openAPIV3Schema;
  const { spec, status } = schema.properties;
  const wide = (column) => (column.priority ? ' (with `-o wide`)' : '');
  return [
    `# ${names.kind}`,
    '',
    `<!-- Made from crds/${names.plural}.yaml by scripts/documents/crd-reference.mjs. -->`,
    '',
    cell(schema.description),
    '',
    `\`${names.plural}.grantry.dev\`, version \`${version.name}\`, ${scope === 'Cluster' ? 'cluster-scoped' : 'namespaced'}; short name \`${names.shortNames[0]}\`, category \`${names.categories[0]}\`.`,
    'How values are written, and what is true of all kinds: [manifests](manifests.md).',
    '',
    '## spec',
    '',
    '| field | type | default | meaning |',
    '| --- | --- | --- | --- |',
    ...fieldsBelow(spec).map(
      ({ path, schema: field, isRequired }) =>
        `| \`${path}\` | ${cell(typeOf(field))} | ${cell(defaultOf(field, isRequired))} | ${cell(field.description)} |`,
    ),
    '',
    'Refused by the API server beside what has another type:',
    '',
    ...[...rulesBelow(schema, '')].map(
      ({ path, message }) => `- ${path === '' ? '' : `\`${path.slice(1)}\`: `}${message}`,
    ),
    '',
    '## status',
    '',
    cell(status.description),
    '',
    '| field | type | meaning |',
    '| --- | --- | --- |',
    ...fieldsBelow(status).map(
      ({ path, schema: field }) => `| \`${path}\` | ${cell(typeOf(field))} | ${cell(field.description)} |`,
    ),
    '',
    '## Columns of `kubectl get`',
    '',
    ...version.additionalPrinterColumns
      .filter(({ description }) => description !== undefined)
      .map((column) => `- ${column.name}${wide(column)}: ${column.description}`),
    '',
  ].join('\n');
}

const stale = [];
for (const file of readdirSync(join(ROOT, 'crds')).filter((name) => name.endsWith('.yaml'))) {
  const { spec } = parse(readFileSync(join(ROOT, 'crds', file), 'utf8'));
  const target = join(ROOT, 'docs/reference', `${spec.names.singular}.md`);
  const text = page(spec);
  if (!process.argv.includes('--check')) writeFileSync(target, text);
  else if (readFileSync(target, 'utf8') !== text) stale.push(target);
}
if (stale.length > 0) {
  console.error(`not as crds/ says; run node scripts/documents/crd-reference.mjs: ${stale.join(', ')}`);
  process.exitCode = 1;
}
