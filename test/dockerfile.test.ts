// What the Dockerfile repeats of other files. That the image works is proven where it runs (test/e2e/image.test.ts).

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { NODE_OPTIONS } from '../bench/load/pinned-process.ts';

const ROOT = join(import.meta.dirname, '..');

it('the image is labelled with the version and the description of the package', () => {
  const dockerfile = readFileSync(join(ROOT, 'Dockerfile'), 'utf8');
  const { version, description, license } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  expect(dockerfile.match(/^ARG VERSION=(.*)$/m)?.[1]).toBe(version);
  expect(dockerfile.match(/image\.description="(.*)"/)?.[1]).toBe(description);
  expect(dockerfile.match(/image\.licenses="(.*)"/)?.[1]).toBe(license);
});

it('the benchmark runs its servers with the options of Node that the image has', () => {
  const dockerfile = readFileSync(join(ROOT, 'Dockerfile'), 'utf8');
  const [node, ...options] = JSON.parse(dockerfile.match(/^ENTRYPOINT (.*)$/m)?.[1] ?? '[]');
  expect([node, options.at(-1)]).toEqual(['node', '/app/dist/main.js']);
  expect(options.slice(0, -1)).toEqual(NODE_OPTIONS);
});

it('what the Dockerfile copies is all that the builder is sent', () => {
  const dockerfile = readFileSync(join(ROOT, 'Dockerfile'), 'utf8');
  const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap(([, names = '']) => names.split(' '));
  const [everything, ...sent] = readFileSync(join(ROOT, '.dockerignore'), 'utf8')
    .split('\n')
    .filter((line) => !line.startsWith('#') && line !== '');
  expect(everything).toBe('*');
  expect(sent.map((line) => line.slice(1)).sort()).toEqual([...new Set(copied)].sort());
});
