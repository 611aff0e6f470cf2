// Apache with mod_auth_openidc, as Debian packages it; scripts/tests/set-up.mjs installs it.

import { existsSync } from 'node:fs';

const PROGRAM = '/usr/sbin/apache2';
const MODULE = '/usr/lib/apache2/modules/mod_auth_openidc.so';

/** Answers the path of the program. @throws where it or the module is missing */
export function apache() {
  if ([PROGRAM, MODULE].every((file) => existsSync(file))) return PROGRAM;
  throw new Error('it comes from Debian: apt-get install libapache2-mod-auth-openidc');
}
