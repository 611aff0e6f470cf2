// The programs that tests need from outside npm: installs what it can (apt, as root, on Debian and its kin), builds the
// API server (kubernetes-assets.mjs), fetches Helm (assets/chart-assets.mjs), libraries of Python, Go and Java (client-libraries/), an old
// Node and TypeScript (library/), and names what stays missing with the way to get it. By itself: `node scripts/test-setup.mjs`.

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { canInstall, installGo, installPackagesOfDebian, isInstalled } from './apt.mjs';
import { chartAssets } from './assets/chart-assets.mjs';
import { envoyAssets } from './assets/envoy-assets.mjs';
import { goClients } from './client-libraries/go.mjs';
import { javaClients } from './client-libraries/java.mjs';
import { pythonClients } from './client-libraries/python.mjs';
import { kubernetesAssets } from './kubernetes-assets.mjs';
import { consumerTools } from './library/consumer-tools.mjs';

/** One program, or a font without a name of a program: the names it goes by, a file that it needs beside it, its Debian package, how else to get it, and the vitest project that cannot run without. */
const PROGRAMS = [
  {
    names: ['redis-server'],
    debian: 'redis-server',
    elsewhere: 'install Redis 7 or newer (macOS: brew install redis)',
    project: undefined,
  },
  {
    names: ['openssl'],
    debian: 'openssl',
    elsewhere: 'install OpenSSL (it makes the certificates that TLS to Redis is tried with)',
    project: undefined,
  },
  {
    names: ['nginx'],
    debian: 'nginx-light',
    elsewhere: 'install nginx (it hands on certificates of clients)',
    project: undefined,
  },
  {
    names: ['haproxy'],
    debian: 'haproxy',
    elsewhere: 'install HAProxy (it hands on certificates of clients)',
    project: undefined,
  },
  {
    names: ['apache2'],
    file: '/usr/lib/apache2/modules/mod_oauth2.so',
    debian: 'libapache2-mod-oauth2',
    elsewhere: 'install Apache 2.4 with mod_oauth2 (an API behind it asks about tokens)',
    project: undefined,
  },
  {
    names: ['sslscan'],
    debian: 'sslscan',
    elsewhere: 'install sslscan (it tries every version and cipher suite of TLS)',
    project: undefined,
  },
  {
    names: ['testssl'],
    debian: 'testssl.sh',
    elsewhere: 'install testssl.sh, and put it on the PATH as testssl (it tries TLS for known attacks)',
    project: undefined,
  },
  {
    names: ['lua5.1'],
    debian: 'lua5.1',
    elsewhere: 'install Lua 5.1 and put it on the PATH as lua5.1 (it runs the health checks that Argo CD is given)',
    project: undefined,
  },
  {
    names: ['python3'],
    debian: 'python3-venv',
    elsewhere: 'install Python 3.9 or newer with venv and pip (client libraries of Python are tried)',
    project: undefined,
  },
  {
    names: ['javac'],
    debian: 'default-jdk-headless',
    elsewhere: 'install a JDK of Java 17 or newer (a client library of Java is tried)',
    project: undefined,
  },
  {
    names: ['mvn'],
    debian: 'maven',
    elsewhere: 'install Maven 3 (it fetches the client library of Java)',
    project: undefined,
  },
  {
    names: ['chromium', 'chromium-browser', 'google-chrome'],
    debian: 'chromium',
    elsewhere: 'install Chromium or Chrome and put it on the PATH as chromium or google-chrome',
    project: 'browser',
  },
  {
    names: [],
    file: '/usr/share/fonts/truetype/wqy/wqy-zenhei.ttc',
    debian: 'fonts-wqy-zenhei',
    elsewhere: 'install a font with Chinese characters (pages are measured in it)',
    project: undefined,
  },
];

/**
 * Installs or builds what is missing, where that can be done. Answers what the tests find in their environment, and what
 * stays missing: a sentence each, with the vitest project that cannot run without it.
 */
export async function setUpPrograms() {
  const programs = installPrograms().map((program) => ({ project: program.project, sentence: explain(program) }));
  const { folder, missing } = await kubernetesAssets({ installGo });
  if (missing !== undefined) programs.push({ project: 'cluster', sentence: missing });
  const chart = chartAssets({ installGo });
  for (const sentence of chart.missing) {
    programs.push({ project: chart.folder === undefined ? 'chart' : undefined, sentence });
  }
  const python = pythonClients();
  if (python.missing !== undefined) programs.push({ project: undefined, sentence: python.missing });
  const go = goClients();
  if (go.missing !== undefined) programs.push({ project: undefined, sentence: go.missing });
  const java = javaClients();
  if (java.missing !== undefined) programs.push({ project: undefined, sentence: java.missing });
  const consumer = consumerTools();
  if (consumer.missing !== undefined) programs.push({ project: undefined, sentence: consumer.missing });
  if (envoyAssets() === undefined)
    programs.push({ project: undefined, sentence: 'Envoy is missing; it hands on certificates of clients in a test' });
  if (missing !== undefined && chart.folder !== undefined) {
    programs.push({ project: 'chart', sentence: 'the tests of the chart need the API server, too' });
  }
  return { missing: programs, environment: folder === undefined ? {} : { KUBEBUILDER_ASSETS: folder } };
}

/** Answers the programs still missing. */
function installPrograms() {
  const isMissing = ({ names, file }) =>
    (names.length > 0 && !isInstalled(...names)) || (file !== undefined && !existsSync(file));
  const missing = PROGRAMS.filter(isMissing);
  if (missing.length > 0 && canInstall()) installPackagesOfDebian(missing.map((program) => program.debian));
  return missing.filter(isMissing);
}

/** What is missing and how to get it, as one sentence. */
function explain(program) {
  const debian = `on Debian and Ubuntu: apt-get install ${program.debian}`;
  return `${program.names[0] ?? program.debian} is missing; ${debian}; elsewhere: ${program.elsewhere}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { missing } = await setUpPrograms();
  for (const { sentence } of missing) console.error(`grantry: ${sentence}`);
  if (missing.length === 0) console.log('grantry: every program that the tests need is installed');
  process.exitCode = missing.length === 0 ? 0 : 1;
}
