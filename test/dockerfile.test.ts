// What the Dockerfile repeats of other files. That the image works is proven where it runs (test/e2e/image.test.ts).

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
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

it('npm’s copies of Node are removed before the Node of the base image compiles the program', () => {
  const [build = ''] = readFileSync(join(ROOT, 'Dockerfile'), 'utf8').split(/^FROM .* AS packages$/m);
  const steps = ['npm ci --ignore-scripts', 'rm -rf node_modules/node-*-* node_modules/.bin/node', 'npm run build'];
  const places = steps.map((step) => build.indexOf(step));
  expect(places).not.toContain(-1);
  expect(places).toEqual(places.toSorted((a, b) => a - b));
});

it('no stage runs the install scripts of packages', () => {
  const installs = readFileSync(join(ROOT, 'Dockerfile'), 'utf8').match(/npm (?:ci|install)[^&\\\n]*/g) ?? [];
  expect(installs.length).toBe(2);
  expect(installs.filter((command) => !command.includes(' --ignore-scripts'))).toEqual([]);
});

it('every stage is made of the build argument BASE', () => {
  const stages = readFileSync(join(ROOT, 'Dockerfile'), 'utf8').match(/^FROM \S+/gm);
  expect(new Set(stages)).toEqual(new Set(['FROM $' + '{BASE}']));
});

/** Runs the step of the last stage in a folder that stands for the root of a base image. @returns its exit code */
function removeInstallers(base: string): number | null {
  const last =
    readFileSync(join(ROOT, 'Dockerfile'), 'utf8')
      .split(/^FROM /m)
      .at(-1) ?? '';
  const [, step = ''] = /^RUN ((?:.*\\\n)*.*)$/m.exec(last) ?? [];
  const script = step.replaceAll('\\\n', '').replace(/\/(?=usr\/local\/|opt\/)/g, `${base}/`);
  const path = ['usr/local/bin', 'usr/bin', 'tools'].map((folder) => join(base, folder)).join(':');
  return spawnSync('/bin/sh', ['-c', script], { env: { PATH: path } }).status;
}

/** A folder with the programs of a base image, and `rm`. */
function aBase(programs: readonly string[]): string {
  const base = mkdtempSync(join(tmpdir(), 'grantry-base-'));
  onTestFinished(() => rmSync(base, { recursive: true }));
  for (const folder of [
    'tools',
    'usr/bin',
    'usr/local/bin',
    'usr/local/lib/node_modules/npm',
    'opt/yarn-v1.22.22/bin',
  ]) {
    mkdirSync(join(base, folder), { recursive: true });
  }
  symlinkSync('/bin/rm', join(base, 'tools/rm'));
  for (const program of programs) writeFileSync(join(base, program), '#!/bin/sh\n', { mode: 0o755 });
  return base;
}

const INSTALLERS = ['npm', 'npx', 'yarn', 'yarnpkg', 'corepack'].map((name) => `usr/local/bin/${name}`);

it('the image has no npm, yarn or corepack, and keeps its Node', () => {
  const base = aBase(['usr/local/bin/node', 'opt/yarn-v1.22.22/bin/yarn.js', ...INSTALLERS]);
  expect(removeInstallers(base)).toBe(0);
  const gone = ['usr/local/lib/node_modules', 'opt/yarn-v1.22.22', ...INSTALLERS];
  expect(gone.filter((path) => existsSync(join(base, path)))).toEqual([]);
  expect(existsSync(join(base, 'usr/local/bin/node'))).toBe(true);
});

it('a base that has npm elsewhere ends the build', () => {
  expect(removeInstallers(aBase(['usr/local/bin/node', 'usr/bin/npm']))).toBe(1);
});
