// `npm start`: grantry on the quickstart's manifests, also on a fresh clone. Arguments go to `grantry dev`:
// `npm start -- --port 8080`, and another folder in front replaces the example: `npm start -- my/manifests`.

import { become, installPackages, modernNode } from './toolchain.mjs';

const args = process.argv.slice(2);
const folder = args[0] !== undefined && !args[0].startsWith('-') ? [] : ['examples/quickstart'];

installPackages();
become(modernNode(), ['src/main.ts', 'dev', ...folder, ...args]);
