// The source of the users that a provider asserts: the issuer of an OpenID provider, or the host of a GitHub.

import { fieldsOf } from '../kinds/manifest.ts';

/** Two providers with the same source assert the same users. */
export type PeopleSource =
  | { readonly type: 'OIDC'; readonly issuer: string }
  | { readonly type: 'GitHub'; readonly host: string };

const DEFAULT_HOST = 'github.com';

/** The source in the `spec` of any manifest; undefined where it names none of a known type. */
export function peopleSource(spec: unknown): PeopleSource | undefined {
  const { type, oidc, gitHub } = fieldsOf(spec);
  const { issuer } = fieldsOf(oidc);
  if (type === 'OIDC') return typeof issuer === 'string' ? { type, issuer } : undefined;
  if (type !== 'GitHub') return undefined;
  const { host = DEFAULT_HOST } = fieldsOf(gitHub);
  return typeof host === 'string' ? { type, host: host.replace(/:443$/, '') } : undefined;
}

/** A text that two sources share only if they are the same. */
export function sourceKey(source: PeopleSource): string {
  return source.type === 'OIDC' ? `OIDC ${source.issuer}` : `GitHub ${source.host}`;
}
