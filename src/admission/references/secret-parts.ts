// The Secrets of the release namespace that belong to grantry: the label that the token servers list them by, and the
// names of those that exist once.

/**
 * The label whose value names the part of grantry that a Secret of the release namespace is: `verifier`, `signing-key`,
 * `pepper`, `webhook`, `controller` or `redis`. Token servers list no others but those of identity providers.
 */
export const PART_LABEL = 'grantry.dev/part';

/** A Secret that exists once: its name, the value of its label, and the key of its text. */
export interface SingleSecret {
  readonly name: string;
  readonly part: 'pepper' | 'webhook' | 'controller' | 'redis';
  readonly key: string;
}

/** The pepper, one value per line: new handles are made with the first, those of all values are accepted. */
export const PEPPER_SECRET: SingleSecret = { name: 'grantry-pepper', part: 'pepper', key: 'pepper' };

/** The keys that sign alerts, one per line: every alert is signed with all of them. */
export const WEBHOOK_SECRET: SingleSecret = { name: 'grantry-webhook', part: 'webhook', key: 'secret' };

/** The key that authenticates the controller to the replicas: see controller-proof.ts. */
export const CONTROLLER_SECRET: SingleSecret = { name: 'grantry-controller-proof', part: 'controller', key: 'key' };

/** The password of the Redis that the chart installs with `redis.dev`: its pod and the token servers mount it. */
export const REDIS_SECRET: SingleSecret = { name: 'grantry-redis-dev', part: 'redis', key: 'password' };

/** The type of the Secrets with local users, which administrators write, and their key. */
export const USERS_SECRET = { type: 'grantry.dev/users', key: 'users.yaml' } as const;
