#!/usr/bin/env node
// `grantry check` as a hook of pre-commit, which runs it from a clone of this repository in the repository of its user:
// packages are installed on the first run, and paths are those of the user. Runs on Node 20.

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { installPackages, modernNode, root } from './toolchain.mjs';

const args = process.argv.slice(2);
installPackages();
const check = [join(root, 'src', 'main.ts'), 'check', ...(args.length === 0 ? ['.'] : args)];
process.exitCode = spawnSync(modernNode(), check, { stdio: 'inherit' }).status ?? 1;
