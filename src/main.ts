#!/usr/bin/env node
// The commands of grantry and their flags. `processes/` implements the commands; each is loaded only when it is run, so
// that `grantry check` in a pipeline starts fast. Only this file exits the process.

import { readFileSync } from 'node:fs';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import type { CheckFormat } from './processes/check/check.ts';
import type { ConfiguredCommand } from './processes/config/config.ts';
import type { KeyAlgorithm } from './processes/generate-key/generate-key.ts';

const USAGE = 2;
const HELP = ['-h, --help', 'print this help'] as const;
const DEV_ISSUER = 'http://localhost:9400';
const CHECK_FORMATS: readonly CheckFormat[] = ['text', 'json', 'github'];
const KEY_ALGORITHMS: readonly KeyAlgorithm[] = ['ES256', 'ES384', 'PS256', 'RS256', 'EdDSA'];

interface DevFlags {
  readonly port?: number;
  readonly host?: string;
  readonly adminPort?: number;
  readonly mtlsPort?: number;
  readonly issuer?: string;
  readonly user?: readonly string[];
  readonly redis?: string;
  readonly strictRedis?: boolean;
}

interface HelpFlag {
  readonly help?: boolean;
}

interface CheckFlags {
  readonly strict?: boolean;
  readonly format: CheckFormat;
  readonly policies?: string;
  readonly namespace?: string;
}

function program(end: (code: number) => void): Command {
  const { stdin, stdout, stderr } = process;
  const root = new Command('grantry')
    .description('OAuth 2.0 for Kubernetes: clients and signing keys are manifests.')
    .version(version(), '--version', 'print the version')
    .helpOption(...HELP)
    .showHelpAfterError('(run grantry --help for usage)')
    .exitOverride();

  const printVariables = async (name: ConfiguredCommand): Promise<void> => {
    const { variableHelp } = await import('./processes/config/variable-help.ts');
    const command = root.commands.find((each) => each.name() === name);
    stdout.write(`${command?.helpInformation()}\n${variableHelp(name)}`);
    end(0);
  };

  root
    .command('dev')
    .description('serve a folder of manifests on this machine, and follow its changes')
    .argument('[DIR]', 'the folder with the manifests', '.')
    .option('--port <number>', 'port of the OAuth endpoints (default: 9400; 0: any free one)', portNumber)
    .option('--host <address>', 'address to listen on (default: 127.0.0.1)')
    .option('--admin-port <number>', 'port of health and metrics (default: the first free one from 9401)', portNumber)
    .option('--mtls-port <number>', 'port for mutual TLS, with certificates made in DIR/.grantry/mtls', portNumber)
    .option('--issuer <url>', 'issuer identifier (default: http://localhost:PORT)')
    .option('--user <name:password>', 'a user who can sign in; repeatable (default: demo:demo on loopback)', collect)
    .option('--redis <url>', 'keep state in this Redis, and share it with every grantry dev that does')
    .option('--strict-redis', 'refuse to start on a Redis that is not set up to keep state')
    .option(...HELP)
    .action(async (directory: string, { help, ...flags }: DevFlags & HelpFlag) => {
      if (help === true) return await printVariables('dev');
      const { dev } = await import('./processes/dev/dev.ts');
      end(await dev({ ...flags, directory, stdout, stderr }));
    });

  root
    .command('server')
    .description('serve the clients of a cluster; configured by the environment')
    .option(...HELP)
    .action(async ({ help }: HelpFlag) => {
      if (help === true) return await printVariables('server');
      const { server: serve } = await import('./processes/server/server.ts');
      end(await serve({ stderr }));
    });

  root
    .command('controller')
    .description('keep what follows from the objects of a cluster; configured by the environment')
    .option(...HELP)
    .action(async ({ help }: HelpFlag) => {
      if (help === true) return await printVariables('controller');
      const { controller: control } = await import('./processes/controller/controller.ts');
      end(await control({ stderr }));
    });

  root
    .command('check')
    .description('check manifests without a cluster')
    .addHelpText('after', '\nexit code 0: no faults, 1: faults (with --strict also warnings), 2: wrong usage')
    .argument('<PATH...>', 'files and folders; - for standard input')
    .addOption(new Option('--format <format>', 'how to print').choices(CHECK_FORMATS).default('text'))
    .option('--policies <DIR>', 'a folder with the ClientPolicies of the cluster')
    .option(
      '--namespace <name>',
      'the namespace of grantry itself, the only one whose SigningKeys and IdentityProviders apply',
    )
    .option('--strict', 'fail on warnings, too')
    .action(async (paths: string[], { format, policies, namespace, strict = false }: CheckFlags) => {
      const { check } = await import('./processes/check/check-in-thread.ts');
      end(await check({ paths, format, policies, namespace, strict, stdin, stdout, stderr }));
    });

  root
    .command('dev-token')
    .description('print the token that a pod of a ServiceAccount would have, for grantry dev')
    .argument('<NAMESPACE/NAME>', 'the ServiceAccount, one of the manifests')
    .argument('[DIR]', 'the folder with the manifests', '.')
    .option('--issuer <url>', 'issuer identifier of the running grantry dev', DEV_ISSUER)
    .action(async (account: string, directory: string, { issuer }: { readonly issuer: string }) => {
      const { devToken } = await import('./processes/dev-token/dev-token.ts');
      end(await devToken({ account, directory, issuer, stdout, stderr }));
    });

  root
    .command('hash-password')
    .description('read a password and print its hash for a users.yaml')
    .action(async () => {
      const { printPasswordHash } = await import('./processes/hash-password/hash-password.ts');
      end(await printPasswordHash({ stdin, stdout, stderr }));
    });

  root
    .command('generate-key')
    .description('make the key of a private_key_jwt client, and print its part of the manifest')
    .argument('<FILE>', 'where the private key goes, as a JWK; must not exist')
    .addOption(new Option('--algorithm <name>', 'what it signs by').choices(KEY_ALGORITHMS).default(KEY_ALGORITHMS[0]))
    .action(async (file: string, { algorithm }: { readonly algorithm: KeyAlgorithm }) => {
      const { generateKey } = await import('./processes/generate-key/generate-key.ts');
      end(await generateKey({ file, algorithm, stdout, stderr }));
    });

  for (const command of root.commands) {
    // Some define it themselves: theirs loads the descriptions of the variables.
    if (command.options.some(({ long }) => long === '--help')) command.helpOption(false);
    else command.helpOption(...HELP);
    command.showHelpAfterError(`(run grantry ${command.name()} --help for usage)`);
  }
  return root;
}

function version(): string {
  const file = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(file) as { readonly version: string }).version;
}

function portNumber(value: string): number {
  const port = Number(value);
  if (!/^\d{1,5}$/.test(value) || port > 65_535) throw new InvalidArgumentError('A port is a number up to 65535.');
  return port;
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

/** Runs one command line. @param end called with the exit code when the command is done, or with 2 for wrong usage */
async function run(end: (code: number) => void): Promise<void> {
  try {
    await program(end).parseAsync();
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    end(error.exitCode === 0 ? 0 : USAGE);
  }
}

// The reader of the output closed the pipe (`grantry check | head`).
process.stdout.on('error', () => process.exit(1));
await run((code) => process.exit(code));
