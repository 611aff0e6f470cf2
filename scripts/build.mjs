// `npm run build`: emits dist/, the form that the image and the package carry. The compiler changes `.ts` to `.js` in
// import paths and keeps the first line of main.ts; whatever else lies in src/ (style sheets) is copied beside it.

import { chmodSync, cpSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { installPackages, modernNode, root, run } from './toolchain.mjs';

installPackages();
const node = modernNode();
const target = join(root, 'dist');

rmSync(target, { recursive: true, force: true });
const compiled = run(node, [join('node_modules', 'typescript', 'bin', 'tsc'), '--project', 'tsconfig.build.json']);
if (compiled !== 0) process.exit(compiled);

cpSync(join(root, 'src'), target, {
  recursive: true,
  filter: (path) => statSync(path).isDirectory() || !path.endsWith('.ts'),
});
chmodSync(join(target, 'main.js'), 0o755);

// A build that cannot say its own version is no build.
process.exit(run(node, [join('dist', 'main.js'), '--version']));
