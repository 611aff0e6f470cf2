// Spring Boot from Maven Central with the application of our own in the folder of its name: jars and classes in our cache, once
// for each content of that folder.

import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cacheFolder } from '../cache-folder.mjs';
import { fetchJars, runQuietly } from '../client-libraries/maven.mjs';
import { lock } from '../lock.mjs';

const [POM, SOURCE] = ['pom.xml', 'Application.java'].map((file) =>
  join(dirname(fileURLToPath(import.meta.url)), 'spring-boot', file),
);

/** Answers a class path whose main class is dev.grantry.consumer.Application. @throws where it cannot be had */
export async function springBoot() {
  const [jars, classes] = [[POM], [POM, SOURCE]].map((files) =>
    cacheFolder('grantry-java', `spring-boot-${revisionOf(files)}`),
  );
  const classPath = `${classes}:${join(jars, '*')}`;
  for (const program of ['java', 'javac']) runQuietly(program, ['-version']);
  const unlock = await lock(cacheFolder('grantry-java', 'spring-boot.lock'), 'another run is fetching Spring Boot');
  try {
    if (!existsSync(jars)) {
      console.error(`grantry: fetching Spring Boot with Maven, once, into ${jars}`);
      fetchJars(readFileSync(POM), jars);
    }
    if (!existsSync(classes)) compile(classPath, classes);
    return classPath;
  } finally {
    unlock();
  }
}

function revisionOf(files) {
  const hash = createHash('sha256');
  for (const file of files) hash.update(readFileSync(file));
  return hash.digest('hex').slice(0, 12);
}

function compile(classPath, target) {
  const folder = mkdtempSync(`${target}-`);
  try {
    runQuietly('javac', ['-proc:none', '-cp', classPath, '-d', folder, SOURCE]);
    renameSync(folder, target);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
