// What in charts/grantry is made from other files: its CRD templates from crds/, its README from values.yaml. `node
// scripts/chart.mjs` writes them, `--check` names those that are not as it would write them.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isMap, isScalar, parseDocument } from 'yaml';

const ROOT = join(import.meta.dirname, '..');
const CHART = join(ROOT, 'charts/grantry');

const CRD_METADATA = /^metadata:\n {2}name: (\S+)\n {2}annotations:\n {4}grantry\.dev\/version: \S+\n/m;

/** A CustomResourceDefinition as a template: the same but for its metadata, and braces that are none of Helm's. */
function crdTemplate(file) {
  const text = readFileSync(join(ROOT, file), 'utf8');
  const [whole, name] = CRD_METADATA.exec(text) ?? [];
  if (whole === undefined) throw new Error(`${file}: its metadata is not name and grantry.dev/version`);
  const metadata = [
    'metadata:',
    `  name: ${name}`,
    '  labels: {{- include "grantry.labels" (list . "crds") | nindent 4 }}',
    '  annotations:',
    '    grantry.dev/version: {{ .Chart.AppVersion | quote }}',
    '    {{- if .Values.crds.keep }}',
    '    helm.sh/resource-policy: keep',
    '    {{- end }}',
  ];
  return [
    `{{- /* Made from ${file} by scripts/chart.mjs. */ -}}`,
    '{{- if .Values.crds.enabled }}',
    text
      .replaceAll('{{', '{{ "{{" }}')
      .replace(whole, `${metadata.join('\n')}\n`)
      .trimEnd(),
    '{{- end }}',
    '',
  ].join('\n');
}

/** Every value with its default and what its `# --` comment says, outside in; maps that are a value as a whole are one. */
function valuesBelow(map, path = '') {
  return map.items.flatMap(({ key, value }) => {
    const name = `${path}${key.value}`;
    const said = /^ -- (.*)$/m.exec(key.commentBefore ?? '')?.[1];
    const isSection = isMap(value) && value.items.length > 0 && said === undefined;
    if (isSection) return valuesBelow(value, `${name}.`);
    if (said === undefined) throw new Error(`values.yaml: ${name} has no comment that begins with --`);
    return [{ name, value, meaning: said }];
  });
}

function readme() {
  const document = parseDocument(readFileSync(join(CHART, 'values.yaml'), 'utf8'));
  // The comment before the first key of a map belongs to the map.
  const attach = (map) => {
    if (map.commentBefore !== undefined && map.items[0] !== undefined) {
      map.items[0].key.commentBefore ??= map.commentBefore;
    }
    for (const { value } of map.items) if (isMap(value)) attach(value);
  };
  attach(document.contents);
  const cell = (text) => text.replaceAll('|', '\\|');
  const text = (value) => JSON.stringify(isScalar(value) ? value.value : value.toJSON());
  const rows = valuesBelow(document.contents).map(
    ({ name, value, meaning }) => `| \`${name}\` | \`${cell(text(value))}\` | ${cell(meaning)} |`,
  );
  const intro = readFileSync(join(CHART, 'README.intro.md'), 'utf8').trimEnd();
  return [intro, '', '## Values', '', '| value | default | meaning |', '| --- | --- | --- |', ...rows, ''].join('\n');
}

const crds = readdirSync(join(ROOT, 'crds')).filter((file) => file.endsWith('.yaml'));
const made = [...crds.map((file) => [`templates/crds/${file}`, crdTemplate(`crds/${file}`)]), ['README.md', readme()]];
const stale = [];
for (const [target, text] of made) {
  const file = join(CHART, target);
  if (!process.argv.includes('--check')) writeFileSync(file, text);
  else if (readFileSync(file, 'utf8') !== text) stale.push(target);
}
if (stale.length > 0) {
  console.error(`not as crds/ and values.yaml say; run node scripts/chart.mjs: ${stale.join(', ')}`);
  process.exitCode = 1;
}
