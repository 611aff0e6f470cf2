// The keys of labels and annotations that an owner may ask for on a Secret that grantry writes. Other operators act on
// such keys, and a tenant must not set them with the rights of grantry.

/** Domains that Kubernetes, Helm, Argo or grantry act on. */
const RESERVED_DOMAINS = ['grantry.dev', 'kubernetes.io', 'k8s.io', 'helm.sh', 'argoproj.io'] as const;
/** The domain whose keys are for people and dashboards, as those without a prefix are. */
export const FREE_DOMAIN = 'app.kubernetes.io';

const QUALIFIED_NAME = /^([a-z0-9]([a-z0-9.-]*[a-z0-9])?\/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;

/**
 * Which keys there are: `malformed` and `reserved` ones are refused for every Secret, `free` ones are permitted, and
 * `governed` ones need the permission of a policy on the Secret of a client.
 */
export type MetadataKey = 'malformed' | 'reserved' | 'free' | 'governed';

/** What a key of a label or annotation is. */
export function metadataKey(key: string): MetadataKey {
  if (!QUALIFIED_NAME.test(key)) return 'malformed';
  const domain = metadataDomain(key);
  if (domain === '' || domain === FREE_DOMAIN) return 'free';
  const isReserved = RESERVED_DOMAINS.some((reserved) => domain === reserved || domain.endsWith(`.${reserved}`));
  return isReserved ? 'reserved' : 'governed';
}

/** The prefix of a key without its slash; the empty string without a prefix. */
export function metadataDomain(key: string): string {
  return key.includes('/') ? key.slice(0, key.indexOf('/')) : '';
}
