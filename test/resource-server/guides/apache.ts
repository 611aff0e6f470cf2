// Apache with mod_oauth2 (scripts/tests/set-up.mjs installs both), around the lines of a page.

import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'vitest';
import type { Program } from './notes-program.ts';

const MODULES = '/usr/lib/apache2/modules';
const APACHE = '/usr/sbin/apache2';
const NEEDED = ['authn_core', 'authz_core', 'headers', 'mpm_event', 'oauth2', 'proxy', 'proxy_http', 'rewrite'];

/** As `describe`; skipped where there is no Apache with mod_oauth2, unless CI demands it. */
export function describeApache(name: string, suite: () => void): void {
  if (existsSync(APACHE) && existsSync(join(MODULES, 'mod_oauth2.so'))) describe(name, suite);
  else if (process.env.CI === 'true') {
    describe(name, () => {
      it('has Apache with mod_oauth2', () => {
        throw new Error('it is not installed');
      });
    });
  } else describe.skip(`${name} (there is no Apache with mod_oauth2)`, suite);
}

/** An Apache with these lines in its configuration. @param folder a new one for its files */
export function apacheWith(lines: string, folder: string): Program {
  // Its children are not root.
  chmodSync(folder, 0o755);
  const user = process.getuid?.() === 0 ? 'User daemon\nGroup daemon\n' : '';
  const modules = NEEDED.map((name) => `LoadModule ${name}_module ${MODULES}/mod_${name}.so\n`).join('');
  const file = join(folder, 'httpd.conf');
  writeFileSync(
    file,
    `ServerRoot ${folder}
ServerName localhost
Listen 127.0.0.1:\${PORT}
PidFile httpd.pid
ErrorLog error.log
DocumentRoot ${folder}
StartServers 1
${user}${modules}${lines}`,
  );
  return { command: APACHE, words: ['-d', folder, '-f', file, '-DFOREGROUND'], cwd: folder };
}
