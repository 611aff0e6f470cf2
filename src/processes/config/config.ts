// The configuration: every GRANTRY_ variable with its default and description, read once, validated and frozen. No
// other module reads the environment. docs/reference/configuration.md lists the same variables; a test compares the
// two.

import { z } from 'zod';
import { parseDuration } from '../../admission/kinds/duration.ts';
import { issuerFault } from '../../oauth/values/issuer.ts';
import { BRAND_VARIABLES, type BrandSettings, brandFaults, brandSettings } from './brand-config.ts';
import { CLUSTER_VARIABLES, type ClusterPlace, clusterPlace } from './cluster-config.ts';
import { FETCH_VARIABLES, type FetchSettings, fetchSettings } from './fetch-config.ts';
import { MTLS_VARIABLES, type MtlsSettings, mtlsFaults, mtlsSettings } from './mtls-config.ts';
import { networks } from './networks.ts';
import { ownVariables } from './own-variables.ts';
import { port } from './port.ts';
import { REDIS_VARIABLES, type RedisSettings, redisFaults, redisSettings } from './redis-config.ts';
import { WEBHOOK_VARIABLES, type WebhookSettings, webhookFaults, webhookSettings } from './webhook-config.ts';

/** An invalid configuration; the message has one line for each fault, which names its variable or flag. */
export class ConfigurationError extends Error {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join('\n'));
    this.name = 'ConfigurationError';
    this.faults = faults;
  }
}

const duration = z.string().transform((text, context) => {
  const seconds = parseDuration(text);
  if (seconds !== undefined && seconds <= 3600) return seconds;
  context.addIssue({ code: 'custom', message: 'is not a duration of at most an hour, such as 5s' });
  return z.NEVER;
});

const switched = z.enum(['on', 'off'], 'is neither on nor off').transform((value) => value === 'on');

/** The schema of each variable, with its description. A default is a text too, as if it had been set. */
const VARIABLES = z.object({
  GRANTRY_ISSUER: z
    .string()
    .superRefine((issuer, context) => {
      const message = issuerFault(issuer);
      if (message) context.addIssue({ code: 'custom', message });
    })
    .optional()
    .describe(
      'The address clients know this server by: https, without a slash at its end. http only on loopback. Unset: `http://localhost:<port>`.',
    ),
  GRANTRY_HOST: z.string().min(1).prefault('127.0.0.1').describe('The address both ports listen on.'),
  GRANTRY_PORT: port.prefault('9400').describe('The public port: OAuth endpoints and pages.'),
  GRANTRY_ADMIN_PORT: port
    .prefault('9401')
    .describe('The admin port: `/livez`, `/readyz`, `/metrics`. Never publish it.'),
  GRANTRY_TRUSTED_PROXIES: networks
    .prefault('')
    .describe(
      'Addresses and CIDR blocks, separated by commas, whose `X-Forwarded-For` is believed. Empty: none. A prefix of length 0 is refused.',
    ),
  GRANTRY_RATE_LIMITS: switched
    .prefault('on')
    .describe(
      '`off` turns off the limits on failed client authentication, on sign-in, and on what namespaces and people store.',
    ),
  GRANTRY_DPOP_NONCE: z
    .enum(['on-demand', 'required'], 'is neither on-demand nor required')
    .prefault('on-demand')
    .describe(
      'Whether a DPoP proof needs a nonce of this server: `on-demand`, where its `iat` is more than 60 seconds off, or always (`required`).',
    ),
  GRANTRY_LOG_LEVEL: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace'], 'is not a log level')
    .prefault('info')
    .describe('`fatal`, `error`, `warn`, `info`, `debug` or `trace`. The audit stream is not affected.'),
  GRANTRY_LOG_FORMAT: z
    .enum(['auto', 'json', 'pretty'], 'is not a log format')
    .prefault('auto')
    .describe(
      '`json`, `pretty` for people (of the audit stream only alerts), or `auto`: `pretty` on a terminal, else `json`.',
    ),
  GRANTRY_LOG_ONE_TOKEN_IN: z
    .string()
    .regex(/^[1-9]\d{0,6}$/, 'is not a whole number of at least 1')
    .transform(Number)
    .prefault('1')
    .describe('Of how many successful token requests one is logged. Refusals are always logged.'),
  GRANTRY_AUDIT_SUBJECTS: z
    .enum(['hashed', 'plain'], 'is neither hashed nor plain')
    .prefault('hashed')
    .describe('How people appear in the audit stream: by a keyed hash, or `plain`.'),
  GRANTRY_DRAIN_DELAY: duration
    .prefault('5s')
    .describe('How long requests are still taken after SIGTERM, while `/readyz` is red.'),
  GRANTRY_NAMESPACE: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'is not the name of a namespace')
    .prefault('default')
    .describe(
      'The release namespace: signing keys and identity providers apply only there. (`grantry dev` takes users from Secrets of any namespace.) In a cluster it must be set.',
    ),
  ...CLUSTER_VARIABLES,
  GRANTRY_DEFAULT_POLICY: z
    .enum(['Baseline', 'Deny', 'AllowAll'], 'is none of Baseline, Deny and AllowAll')
    .prefault('Baseline')
    .describe('What applies to a namespace that no ClientPolicy matches: `Baseline`, `Deny` or `AllowAll`.'),
  GRANTRY_PEPPER_FILE: z
    .string()
    .min(1)
    .optional()
    .describe(
      'A file with the pepper that handles and sealed fields are made with, one value a line: the first makes, all are accepted. Unset: `grantry dev` makes one and keeps it; in a cluster it is that of the Secret `grantry-pepper`, which the controller makes unless this is set for it too.',
    ),
  GRANTRY_SIGN_IN_ORDER: z
    .enum(['providers-first', 'local-first'], 'is neither providers-first nor local-first')
    .prefault('providers-first')
    .describe(
      'What the login page begins with where people sign in by identity providers and by password: the buttons of the providers, with the form for a password folded below them (`providers-first`), or that form (`local-first`).',
    ),
  ...BRAND_VARIABLES,
  ...FETCH_VARIABLES,
  ...REDIS_VARIABLES,
  ...MTLS_VARIABLES,
  ...WEBHOOK_VARIABLES,
});

type Variable = keyof typeof VARIABLES.shape;
const NAMES = Object.keys(VARIABLES.shape) as readonly Variable[];

/** Texts by variable, as in an environment. */
export type VariableTexts = Readonly<Partial<Record<Variable, string>>>;

/** The configuration of a process. */
export interface Settings {
  readonly issuer: string;
  /** Whether the issuer was configured; otherwise it is derived from the port. */
  readonly issuerGiven: boolean;
  readonly host: string;
  readonly port: number;
  readonly adminPort: number;
  readonly trustedProxies: readonly string[];
  readonly rateLimits: boolean;
  /** When DPoP proofs need a nonce. */
  readonly dpopNonce: 'on-demand' | 'required';
  readonly logLevel: string;
  readonly logFormat: 'auto' | 'json' | 'pretty';
  readonly logOneTokenIn: number;
  readonly auditSubjects: 'hashed' | 'plain';
  readonly drainDelaySeconds: number;
  readonly namespace: string;
  readonly className: string;
  /** Empty: all namespaces. */
  readonly watchNamespaces: readonly string[];
  /** Where the controller finds the replicas; it queries none where this is undefined and `serverAdminUrls` empty. */
  readonly serverService: string | undefined;
  readonly serverAdminUrls: readonly string[];
  /** Whether the controller provides the password of the chart's own Redis. */
  readonly generateRedisPassword: boolean;
  /** The user that the controller creates where there are none; undefined: none is created. */
  readonly initialUser: string | undefined;
  readonly usersFile: string | undefined;
  readonly cluster: ClusterPlace;
  readonly defaultPolicy: 'Baseline' | 'Deny' | 'AllowAll';
  readonly pepperFile: string | undefined;
  /** What the login page begins with. */
  readonly signInOrder: 'providers-first' | 'local-first';
  readonly brand: BrandSettings;
  readonly fetch: FetchSettings;
  /** Undefined: state is in the memory of the process. */
  readonly redis: RedisSettings | undefined;
  /** Undefined: mutual TLS is off. */
  readonly mtls: MtlsSettings | undefined;
  /** Undefined: alerts go to the audit stream and the metrics only. */
  readonly alertWebhook: WebhookSettings | undefined;
}

/** One variable, for help texts and the reference. */
export interface VariableReference {
  readonly name: string;
  /** The text of the default; undefined when there is none. */
  readonly default: string | undefined;
  readonly meaning: string;
}

/** The commands that the environment configures. */
export type ConfiguredCommand = 'dev' | 'server' | 'controller';

const OF_CONTROLLER: readonly Variable[] = [
  'GRANTRY_SERVER_SERVICE',
  'GRANTRY_SERVER_ADMIN_URLS',
  'GRANTRY_GENERATE_REDIS_PASSWORD',
  'GRANTRY_INITIAL_USER',
];
const OF_CLUSTER: readonly Variable[] = ['GRANTRY_CLASS', 'GRANTRY_WATCH_NAMESPACES', 'GRANTRY_USERS_FILE'];
/** Alerts need Redis, and so does the webhook whose secret the controller makes. */
const ALSO_OF_CONTROLLER: readonly Variable[] = [
  'GRANTRY_ISSUER',
  'GRANTRY_HOST',
  'GRANTRY_ADMIN_PORT',
  'GRANTRY_LOG_LEVEL',
  'GRANTRY_LOG_FORMAT',
  'GRANTRY_LOG_ONE_TOKEN_IN',
  'GRANTRY_NAMESPACE',
  'GRANTRY_DEFAULT_POLICY',
  'GRANTRY_PEPPER_FILE',
  'GRANTRY_REDIS_URL',
  ...(Object.keys(MTLS_VARIABLES) as readonly (keyof typeof MTLS_VARIABLES)[]),
  ...(Object.keys(WEBHOOK_VARIABLES) as readonly (keyof typeof WEBHOOK_VARIABLES)[]),
];

function isReadBy(command: ConfiguredCommand, name: Variable): boolean {
  if (OF_CONTROLLER.includes(name)) return command === 'controller';
  if (OF_CLUSTER.includes(name)) return command !== 'dev';
  return command !== 'controller' || ALSO_OF_CONTROLLER.includes(name);
}

/** The variables of a command, or all, in the order of the reference. */
export function variableReference(command?: ConfiguredCommand): readonly VariableReference[] {
  const defaults: Readonly<Record<string, unknown>> = z.toJSONSchema(VARIABLES, { io: 'input', unrepresentable: 'any' })
    .properties as never;
  return NAMES.filter((name) => command === undefined || isReadBy(command, name)).map((name) => {
    const { default: text } = (defaults[name] ?? {}) as { default?: string };
    return { name, default: text, meaning: VARIABLES.shape[name].description ?? '' };
  });
}

export interface SettingsSources {
  /** From the command line; takes precedence over the environment. */
  readonly flags?: VariableTexts;
  /** Of the command; the environment takes precedence over them, and they over the general defaults. */
  readonly defaults?: VariableTexts;
  /** Default: the environment of the process. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** The variables that the command requires. */
  readonly required?: readonly Variable[];
  /** Whether a Secret of the cluster may provide what no file provides. */
  readonly hasSecrets?: boolean;
}

/** Reads the configuration, applies the defaults and validates it. @throws ConfigurationError with every fault */
export function readSettings({
  flags,
  defaults,
  environment = process.env,
  required = [],
  hasSecrets = false,
}: SettingsSources = {}): Settings {
  const { texts, faults } = ownVariables(environment, NAMES);
  const given = { ...defaults, ...texts, ...flags };
  const isSet = (name: Variable) => given[name] !== undefined;
  const parsed = VARIABLES.safeParse(given);
  const missing = required.filter((name) => !isSet(name)).map((name) => `${name} is not set: ${NEEDED[name] ?? ''}`);
  const combined = [brandFaults(isSet), redisFaults(isSet), mtlsFaults(isSet), webhookFaults(isSet, hasSecrets)];
  const all = [...faults, ...missing, ...combined.flat()];
  if (!parsed.success || all.length > 0) {
    const issues = parsed.error?.issues ?? [];
    const messages = issues.map(({ path, message }) => `${givenAs(String(path[0]) as Variable, flags)} ${message}`);
    throw new ConfigurationError([...all, ...messages]);
  }
  const values = parsed.data;
  return Object.freeze({
    issuer: values.GRANTRY_ISSUER ?? `http://localhost:${values.GRANTRY_PORT}`,
    issuerGiven: values.GRANTRY_ISSUER !== undefined,
    host: values.GRANTRY_HOST,
    port: values.GRANTRY_PORT,
    adminPort: values.GRANTRY_ADMIN_PORT,
    trustedProxies: values.GRANTRY_TRUSTED_PROXIES,
    rateLimits: values.GRANTRY_RATE_LIMITS,
    dpopNonce: values.GRANTRY_DPOP_NONCE,
    logLevel: values.GRANTRY_LOG_LEVEL,
    logFormat: values.GRANTRY_LOG_FORMAT,
    logOneTokenIn: values.GRANTRY_LOG_ONE_TOKEN_IN,
    auditSubjects: values.GRANTRY_AUDIT_SUBJECTS,
    drainDelaySeconds: values.GRANTRY_DRAIN_DELAY,
    namespace: values.GRANTRY_NAMESPACE,
    className: values.GRANTRY_CLASS,
    watchNamespaces: values.GRANTRY_WATCH_NAMESPACES,
    serverService: values.GRANTRY_SERVER_SERVICE,
    serverAdminUrls: values.GRANTRY_SERVER_ADMIN_URLS,
    generateRedisPassword: values.GRANTRY_GENERATE_REDIS_PASSWORD,
    initialUser: values.GRANTRY_INITIAL_USER,
    usersFile: values.GRANTRY_USERS_FILE,
    cluster: clusterPlace(environment),
    defaultPolicy: values.GRANTRY_DEFAULT_POLICY,
    pepperFile: values.GRANTRY_PEPPER_FILE,
    signInOrder: values.GRANTRY_SIGN_IN_ORDER,
    brand: brandSettings(values),
    fetch: fetchSettings(values),
    redis: redisSettings(values),
    mtls: mtlsSettings(values),
    alertWebhook: webhookSettings(values),
  });
}

/** The purpose of each variable that a command may require, for the error text. */
const NEEDED: Partial<Record<Variable, string>> = {
  GRANTRY_ISSUER: 'the address clients know this server by, such as https://id.example.com',
  GRANTRY_NAMESPACE: 'the namespace that grantry itself runs in',
  GRANTRY_REDIS_URL: 'where the replicas keep what they share, such as redis://redis:6379',
};

/** Flags that are not named like their variable. */
const FLAGS: Partial<Record<Variable, string>> = {
  GRANTRY_REDIS_URL: '--redis',
  GRANTRY_REDIS_STRICT: '--strict-redis',
};

/** The name under which a setting was given: `--issuer` if it was on the command line, else `GRANTRY_ISSUER`. */
function givenAs(variable: Variable, flags: VariableTexts = {}): string {
  if (flags[variable] === undefined) return variable;
  return FLAGS[variable] ?? `--${variable.slice('GRANTRY_'.length).toLowerCase().replaceAll('_', '-')}`;
}

/** A flag as the user must write it: `--port`, or `npm start -- --port` under `npm start`. */
export function flagToGive(flag: string, environment: SettingsSources['environment'] = process.env): string {
  return environment.npm_lifecycle_event === 'start' ? `npm start -- ${flag}` : flag;
}
