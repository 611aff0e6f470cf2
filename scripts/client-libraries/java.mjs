// The client library of Java that tests try, from Maven Central into our cache, once, with what it needs. By itself: `node
// scripts/client-libraries/java.mjs` prints the class path on stdout, and everything else on stderr.

import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cacheFolder } from '../cache-folder.mjs';
import { requireFetching } from '../tests/fetching.mjs';
import { fetchJars, runQuietly } from './maven.mjs';

/** As a POM names them; what they need comes with them. */
const LIBRARIES = [{ groupId: 'com.nimbusds', artifactId: 'oauth2-oidc-sdk', version: '11.39' }];

/** Changes with the list above. */
const REVISION = createHash('sha256').update(JSON.stringify(LIBRARIES)).digest('hex').slice(0, 12);

/** Finds or fetches them. Answers `{ classPath }`, as `java -cp` reads it, or `{ missing }`, a sentence. */
export function javaClients() {
  const folder = cacheFolder('grantry-java', REVISION);
  try {
    for (const program of ['java', 'javac']) runQuietly(program, ['-version']);
    if (!existsSync(folder)) {
      requireFetching();
      console.error(`grantry: fetching ${LIBRARIES.map(({ artifactId }) => artifactId).join(', ')} with Maven`);
      fetchJars(pom(), folder);
    }
    return { classPath: join(folder, '*') };
  } catch (error) {
    return { missing: `the client library of Java cannot be had: ${error.message}` };
  }
}

function pom() {
  const element = (name, content) => `<${name}>${content}</${name}>`;
  const coordinates = (names) =>
    Object.entries(names)
      .map(([name, value]) => element(name, value))
      .join('');
  const dependencies = LIBRARIES.map((library) => element('dependency', coordinates(library))).join('');
  const project = { groupId: 'dev.grantry', artifactId: 'client-libraries', version: '1' };
  const content = element('modelVersion', '4.0.0') + coordinates(project) + element('dependencies', dependencies);
  return `<project xmlns="http://maven.apache.org/POM/4.0.0">${content}</project>\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { classPath, missing } = javaClients();
  if (missing !== undefined) console.error(`grantry: ${missing}`);
  else console.log(classPath);
  process.exitCode = missing === undefined ? 0 : 1;
}
