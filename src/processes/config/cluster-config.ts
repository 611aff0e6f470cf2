// The variables of the processes in a cluster: the class of the install, the namespaces that it serves, and the address
// of the API server. `config.ts` reads them together with all others.

import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { z } from 'zod';
import { DEFAULT_CLASS } from '../../admission/kinds/manifest.ts';
import { usernameSchema } from '../../login/local/username.ts';

const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

const namespaces = z.string().transform((text, context) => {
  const list = text.split(',').flatMap((entry) => entry.trim() || []);
  for (const entry of list.filter((candidate) => !LABEL.test(candidate))) {
    context.addIssue({ code: 'custom', message: `holds ${entry}, which is not the name of a namespace` });
  }
  return [...new Set(list)];
});

const username = z.string().transform((text, context) => {
  const { data } = usernameSchema.safeParse(text);
  if (data !== undefined) return data;
  const message = 'is not a username: 1 to 254 characters, no control characters, no white space around';
  context.addIssue({ code: 'custom', message });
  return z.NEVER;
});

const adminUrls = z.string().transform((text, context) => {
  const list = text.split(',').flatMap((entry) => entry.trim() || []);
  for (const entry of list) {
    const url = URL.parse(entry);
    const isAddress =
      url !== null && /^https?:$/.test(url.protocol) && url.pathname === '/' && url.search + url.hash === '';
    if (!isAddress) context.addIssue({ code: 'custom', message: `holds ${entry}, which is not an http address` });
  }
  return list;
});

/** The schema of each variable, with its description. */
export const CLUSTER_VARIABLES = {
  GRANTRY_CLASS: z
    .string()
    .regex(LABEL, 'is not a class: lower-case letters, digits and - only')
    .prefault(DEFAULT_CLASS)
    .describe('In a cluster: only OAuthClients and ClientPolicies with this `spec.className` apply.'),
  GRANTRY_WATCH_NAMESPACES: namespaces
    .prefault('')
    .describe('In a cluster: the namespaces, separated by commas, whose OAuthClients are served. Empty: all.'),
  GRANTRY_SERVER_SERVICE: z
    .string()
    .regex(LABEL, 'is not the name of a Service')
    .optional()
    .describe(
      '`grantry controller`: the Service of the release namespace behind which the replicas of the token server are, with a port named `admin`. A change is programmed when all of them serve it.',
    ),
  GRANTRY_SERVER_ADMIN_URLS: adminUrls
    .prefault('')
    .describe(
      '`grantry controller`: the admin addresses of the replicas, separated by commas, where no Service has them. Empty, and no Service named: the controller queries no replica.',
    ),
  GRANTRY_GENERATE_REDIS_PASSWORD: z
    .enum(['on', 'off'], 'is neither on nor off')
    .transform((value) => value === 'on')
    .prefault('off')
    .describe(
      '`grantry controller`: `on` makes the leader create the Secret `grantry-redis-dev` with a random `password`, which the chart gives to the Redis of `redis.dev` and to the token servers.',
    ),
  GRANTRY_INITIAL_USER: username
    .optional()
    .describe(
      '`grantry controller`: the first user. Where the release namespace has no Secret of the type `grantry.dev/users`, the leader creates `grantry-initial-user` with this user and a random `password`. Without effect where `GRANTRY_USERS_FILE` is set.',
    ),
  GRANTRY_USERS_FILE: z
    .string()
    .min(1)
    .optional()
    .describe(
      '`grantry server`: a `users.yaml` with people who can sign in, which applies before the Secrets of the type `grantry.dev/users` in the release namespace. Read again when it changes.',
    ),
} as const;

/** The address of the API server: from the environment of a pod, or from kubeconfig files. */
export type ClusterPlace =
  | { readonly kind: 'pod'; readonly host: string; readonly port: string }
  | { readonly kind: 'kubeconfig'; readonly files: readonly string[] };

/** From `KUBECONFIG`, else from the variables that Kubernetes sets in a pod, else the kubeconfig in the home folder. */
export function clusterPlace(environment: Readonly<Record<string, string | undefined>>): ClusterPlace {
  const { KUBECONFIG, KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = '443' } = environment;
  const files = (KUBECONFIG ?? '').split(delimiter).filter((file) => file !== '');
  if (files.length > 0) return { kind: 'kubeconfig', files };
  if (host !== undefined && host !== '') return { kind: 'pod', host, port };
  return { kind: 'kubeconfig', files: [join(homedir(), '.kube', 'config')] };
}
