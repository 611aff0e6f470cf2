// Apache with mod_auth_openidc, as Debian packages it.

import { existsSync } from 'node:fs';
import { canInstall, installPackagesOfDebian } from '../apt.mjs';
import { cacheFolder } from '../cache-folder.mjs';
import { lock } from '../lock.mjs';

const PROGRAM = '/usr/sbin/apache2';
const MODULE = '/usr/lib/apache2/modules/mod_auth_openidc.so';
/** `apache2` would start a server. */
const PACKAGES = ['apache2-bin', 'libapache2-mod-auth-openidc'];

/** Answers the path of the program, installed where it or the module is missing. @throws where it cannot be had */
export async function apache() {
  const isInstalled = () => [PROGRAM, MODULE].every((file) => existsSync(file));
  if (!isInstalled() && canInstall()) {
    const unlock = await lock(cacheFolder('grantry-consumers', 'apt.lock'), 'another run is installing Apache');
    try {
      if (!isInstalled()) installPackagesOfDebian(PACKAGES);
    } finally {
      unlock();
    }
  }
  if (isInstalled()) return PROGRAM;
  throw new Error(`it comes from Debian: apt-get install ${PACKAGES.join(' ')}`);
}
