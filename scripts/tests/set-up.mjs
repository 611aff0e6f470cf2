// The programs that tests need from outside npm. `npm test` installs by itself, as root on Debian and its kin, those without which most
// tests of Redis and of TLS cannot run. Here `npm run test:setup` installs all: packages of Debian, an API server of Kubernetes
// (kubernetes-assets.mjs), Helm (assets/), libraries of Python, Go and Java (client-libraries/), an old Node and TypeScript
// (library/), the programs of others (consumers/). It says first what is missing, asks on a terminal, unless with `--yes`, and names
// what stays missing with the way to get it.

import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import { fileURLToPath } from 'node:url';
import { canInstall, installGo, installPackagesOfDebian, isInstalled } from '../apt.mjs';
import { chartAssets } from '../assets/chart-assets.mjs';
import { envoyAssets } from '../assets/envoy-assets.mjs';
import { cacheFolder } from '../cache-folder.mjs';
import { goClients } from '../client-libraries/go.mjs';
import { javaClients } from '../client-libraries/java.mjs';
import { pythonClients } from '../client-libraries/python.mjs';
import { CONSUMER_PROGRAMS, consumerProgram } from '../consumers/consumer-programs.mjs';
import { kubernetesAssets } from '../kubernetes-assets.mjs';
import { consumerTools } from '../library/consumer-tools.mjs';
import { fail, installPackages } from '../toolchain.mjs';

/** One program, or a font without a name of a program: the names it goes by, a file that it needs beside it, its Debian package, how else to get it, and whether `npm test` installs it by itself. */
const PROGRAMS = [
  {
    names: ['redis-server'],
    debian: 'redis-server',
    elsewhere: 'install Redis 7 or newer (macOS: brew install redis)',
    isNeeded: true,
  },
  {
    names: ['openssl'],
    debian: 'openssl',
    elsewhere: 'install OpenSSL (it makes the certificates that TLS is tried with)',
    isNeeded: true,
  },
  {
    names: ['curl'],
    debian: 'curl',
    elsewhere: 'install curl (the commands of README and the guides are tried)',
    isNeeded: true,
  },
  {
    names: ['nginx'],
    debian: 'nginx-light',
    elsewhere: 'install nginx (it hands on certificates of clients)',
    isNeeded: false,
  },
  {
    names: ['haproxy'],
    debian: 'haproxy',
    elsewhere: 'install HAProxy (it hands on certificates of clients)',
    isNeeded: false,
  },
  {
    names: ['apache2'],
    file: '/usr/lib/apache2/modules/mod_oauth2.so',
    debian: 'libapache2-mod-oauth2',
    elsewhere: 'install Apache 2.4 with mod_oauth2 (an API behind it asks about tokens)',
    isNeeded: false,
  },
  {
    names: ['apache2'],
    file: '/usr/lib/apache2/modules/mod_auth_openidc.so',
    debian: 'libapache2-mod-auth-openidc',
    elsewhere: 'install Apache 2.4 with mod_auth_openidc (people sign in to it)',
    isNeeded: false,
  },
  {
    names: ['sslscan'],
    debian: 'sslscan',
    elsewhere: 'install sslscan (it tries every version and cipher suite of TLS)',
    isNeeded: false,
  },
  {
    names: ['testssl'],
    debian: 'testssl.sh',
    elsewhere: 'install testssl.sh, and put it on the PATH as testssl (it tries TLS for known attacks)',
    isNeeded: false,
  },
  {
    names: ['lua5.1'],
    debian: 'lua5.1',
    elsewhere: 'install Lua 5.1 and put it on the PATH as lua5.1 (it runs the health checks that Argo CD is given)',
    isNeeded: false,
  },
  {
    names: ['python3'],
    debian: 'python3-venv',
    elsewhere: 'install Python 3.9 or newer with venv and pip (client libraries of Python are tried)',
    isNeeded: false,
  },
  {
    names: ['javac'],
    debian: 'default-jdk-headless',
    elsewhere: 'install a JDK of Java 17 or newer (a client library of Java is tried)',
    isNeeded: false,
  },
  {
    names: ['mvn'],
    debian: 'maven',
    elsewhere: 'install Maven 3 (it fetches the client library of Java)',
    isNeeded: false,
  },
  {
    names: ['chromium', 'chromium-browser', 'google-chrome'],
    debian: 'chromium',
    elsewhere: 'install Chromium or Chrome and put it on the PATH as chromium or google-chrome',
    isNeeded: false,
  },
  {
    names: [],
    file: '/usr/share/fonts/truetype/wqy/wqy-zenhei.ttc',
    debian: 'fonts-wqy-zenhei',
    elsewhere: 'install a font with Chinese characters (pages are measured in it)',
    isNeeded: false,
  },
];

/** For `npm test`: what most tests cannot run without. Answers a sentence for each program that is missing still. */
export async function setUpNeeded() {
  const needed = PROGRAMS.filter(({ isNeeded }) => isNeeded);
  await install(needed);
  return needed.filter(isMissing).map(explain);
}

/**
 * Everything for the tests of this repository and those of a cluster. Answers what the tests find in their environment, and
 * what is missing still: a sentence each, with the vitest project that cannot run without it.
 * @param isAgreed whether nothing is to be asked
 */
export async function setUpPrograms({ isAgreed = false } = {}) {
  await install(PROGRAMS, isAgreed);
  const programs = PROGRAMS.filter(isMissing).map((program) => ({ project: undefined, sentence: explain(program) }));
  const { folder, missing } = await kubernetesAssets({ installGo });
  if (missing !== undefined) programs.push({ project: 'cluster', sentence: missing });
  const chart = chartAssets({ installGo });
  for (const sentence of chart.missing) {
    programs.push({ project: chart.folder === undefined ? 'chart' : undefined, sentence });
  }
  if (missing !== undefined && chart.folder !== undefined) {
    programs.push({ project: 'chart', sentence: 'the tests of the chart need the API server, too' });
  }
  for (const { missing: sentence } of [pythonClients(), goClients(), javaClients(), consumerTools()]) {
    if (sentence !== undefined) programs.push({ project: undefined, sentence });
  }
  if (envoyAssets() === undefined)
    programs.push({ project: undefined, sentence: 'Envoy is missing; it hands on certificates of clients in a test' });
  return { missing: programs, environment: folder === undefined ? {} : { KUBEBUILDER_ASSETS: folder } };
}

/** Installs what is missing and apt can install, unless a person at a terminal says no to it. */
async function install(programs, isAgreed = false) {
  const packages = missingPackages(programs);
  if (packages.length === 0) return;
  console.error(`grantry: tests need what is not installed; from Debian: ${packages.join(', ')}`);
  if (isAgreed || (await agrees())) installPackagesOfDebian(packages);
}

function missingPackages(programs) {
  return canInstall() ? programs.filter(isMissing).map(({ debian }) => debian) : [];
}

function isMissing({ names, file }) {
  return (names.length > 0 && !isInstalled(...names)) || (file !== undefined && !existsSync(file));
}

/** Without a terminal there is no one to ask, and it goes on. */
async function agrees() {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return true;
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question('grantry: go on? [Y/n] ');
  terminal.close();
  return /^(?:y|yes)?$/i.test(answer.trim());
}

/** What is missing and how to get it, as one sentence. */
function explain(program) {
  const debian = `on Debian and Ubuntu: apt-get install ${program.debian}`;
  return `${program.names[0] ?? program.debian} is missing; ${debian}; elsewhere: ${program.elsewhere}`;
}

/** Those of `test/consumers/`, which the tests themselves build at the first use. */
async function buildConsumers() {
  const sentences = [];
  for (const name of CONSUMER_PROGRAMS) {
    await consumerProgram(name).catch((error) => sentences.push(`${name} cannot be had: ${error.message}`));
  }
  return sentences;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const packages = missingPackages(PROGRAMS);
  console.error(`grantry: this installs, for all tests of this repository, what is missing of
  packages of npm (package-lock.json);
  packages of Debian: ${packages.length === 0 ? 'none that apt-get can install' : `${packages.length}: ${packages.join(', ')}`};
  in ${cacheFolder()}: an API server of Kubernetes and programs that sign people in, built from Go modules (20 minutes on
  two cores); Helm; client libraries of Python, Go and Java; Envoy; an old Node and TypeScript.`);
  const isAgreed = process.argv.includes('--yes') || (await agrees());
  if (!isAgreed) fail('nothing was installed');
  installPackages();
  const { missing } = await setUpPrograms({ isAgreed });
  const sentences = [...missing.map(({ sentence }) => sentence), ...(await buildConsumers())];
  for (const sentence of sentences) console.error(`grantry: ${sentence}`);
  if (sentences.length === 0) console.log('grantry: every program that the tests need is installed');
  process.exitCode = sentences.length === 0 ? 0 : 1;
}
