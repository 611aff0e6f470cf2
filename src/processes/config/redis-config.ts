// The GRANTRY_REDIS_ variables: the address of Redis, the credentials, and the required durability. `config.ts` reads
// them together with all others.

import { z } from 'zod';
import { parseRedisUrl, type RedisTarget } from '../../redis/link/redis-url.ts';
import type { Acknowledgement } from '../../redis/scripts/script-runner.ts';

/** The longest wait for replicas, in milliseconds: the rest of a request's second is for the network. */
const LONGEST_WAIT = 500;

const file = z.string().min(1);

/** The schema of each variable, with its description. */
export const REDIS_VARIABLES = {
  GRANTRY_REDIS_URL: z
    .string()
    .transform((text, context): RedisTarget => {
      try {
        return parseRedisUrl(text);
      } catch (error) {
        context.addIssue({ code: 'custom', message: (error as Error).message });
        return z.NEVER;
      }
    })
    .optional()
    .describe(
      'Where Redis is: `redis://host:port`, `redis+sentinel://host:port,host:port/primary` or `redis+cluster://host:port,host:port`; `rediss` for TLS. Unset: state is in the memory of the process.',
    ),
  GRANTRY_REDIS_USERNAME: z.string().min(1).optional().describe('The ACL user. Unset: the default user.'),
  GRANTRY_REDIS_USERNAME_FILE: file
    .optional()
    .describe(
      'A file with the ACL user, instead of `GRANTRY_REDIS_USERNAME`. Like the files below it is read again at every connect.',
    ),
  GRANTRY_REDIS_PASSWORD_FILE: file.optional().describe('A file with the password.'),
  GRANTRY_REDIS_SENTINEL_PASSWORD_FILE: file
    .optional()
    .describe('A file with the password of the Sentinels, when they have one.'),
  GRANTRY_REDIS_CA_FILE: file
    .optional()
    .describe('PEM certificates that sign the server’s. Unset: those the system trusts.'),
  GRANTRY_REDIS_CERTIFICATE_FILE: file
    .optional()
    .describe('Our PEM certificate, where Redis asks for one; needs `GRANTRY_REDIS_KEY_FILE`.'),
  GRANTRY_REDIS_KEY_FILE: file.optional().describe('The PEM key of our certificate.'),
  GRANTRY_REDIS_PREFIX: z
    .string()
    .regex(/^[A-Za-z0-9:._-]{0,64}$/, 'has other characters than letters, digits and : . _ -')
    .prefault('grantry:')
    .describe('What every key begins with. Two deployments on one Redis need two.'),
  GRANTRY_REDIS_WAIT: z
    .string()
    .transform((text, context): Acknowledgement => {
      const [, replicas, timeout] = /^([1-9]):([1-9]\d{0,2})$/.exec(text) ?? [];
      if (Number(timeout) <= LONGEST_WAIT) return { replicas: Number(replicas), timeout: Number(timeout) };
      const message = `is not replicas:milliseconds, such as 1:100, with at most ${LONGEST_WAIT} ms`;
      context.addIssue({ code: 'custom', message });
      return z.NEVER;
    })
    .optional()
    .describe(
      'How many replicas of Redis must have a redemption, a rotation or a revocation before it is answered, and for how many milliseconds to wait for them, e.g. `1:100`. Unset: the primary alone is enough.',
    ),
  GRANTRY_REDIS_STRICT: z
    .enum(['on', 'off'], 'is neither on nor off')
    .transform((value) => value === 'on')
    .prefault('off')
    .describe('`on` refuses to start on a Redis that is not set up to keep state; `off` warns.'),
} as const;

type Variable = keyof typeof REDIS_VARIABLES;

/** The configuration of Redis. */
export interface RedisSettings {
  readonly target: RedisTarget;
  readonly username: string | undefined;
  readonly usernameFile: string | undefined;
  readonly passwordFile: string | undefined;
  readonly sentinelPasswordFile: string | undefined;
  readonly caFile: string | undefined;
  readonly certificateFile: string | undefined;
  readonly keyFile: string | undefined;
  readonly prefix: string;
  readonly acknowledgement: Acknowledgement | undefined;
  readonly strict: boolean;
}

const shape = z.object(REDIS_VARIABLES);
type Values = Readonly<z.output<typeof shape>>;

/** The settings from the variables; undefined without an address. */
export function redisSettings(values: Values): RedisSettings | undefined {
  const target = values.GRANTRY_REDIS_URL;
  if (target === undefined) return undefined;
  return {
    target,
    username: values.GRANTRY_REDIS_USERNAME,
    usernameFile: values.GRANTRY_REDIS_USERNAME_FILE,
    passwordFile: values.GRANTRY_REDIS_PASSWORD_FILE,
    sentinelPasswordFile: values.GRANTRY_REDIS_SENTINEL_PASSWORD_FILE,
    caFile: values.GRANTRY_REDIS_CA_FILE,
    certificateFile: values.GRANTRY_REDIS_CERTIFICATE_FILE,
    keyFile: values.GRANTRY_REDIS_KEY_FILE,
    prefix: values.GRANTRY_REDIS_PREFIX,
    acknowledgement: values.GRANTRY_REDIS_WAIT,
    strict: values.GRANTRY_REDIS_STRICT,
  };
}

/** Faults in the combination of variables. @param isSet whether a variable has a text */
export function redisFaults(isSet: (name: Variable) => boolean): readonly string[] {
  const faults: string[] = [];
  if (!isSet('GRANTRY_REDIS_URL')) {
    const others = (Object.keys(REDIS_VARIABLES) as Variable[]).filter(isSet);
    faults.push(...others.map((name) => `${name} is set, but GRANTRY_REDIS_URL, the address of Redis, is not`));
  }
  if (isSet('GRANTRY_REDIS_CERTIFICATE_FILE') !== isSet('GRANTRY_REDIS_KEY_FILE')) {
    faults.push('GRANTRY_REDIS_CERTIFICATE_FILE and GRANTRY_REDIS_KEY_FILE need each other');
  }
  if (isSet('GRANTRY_REDIS_USERNAME') && isSet('GRANTRY_REDIS_USERNAME_FILE')) {
    faults.push('GRANTRY_REDIS_USERNAME and GRANTRY_REDIS_USERNAME_FILE both name a user: set one of them');
  }
  return faults;
}
