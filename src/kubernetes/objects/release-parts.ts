// The Secrets of the release namespace that the token server and the controller list: those with a part label, and those
// of identity providers, which administrators write, by their type. And the text of a part that has a single Secret.

import { PROVIDER_SECRET_TYPE } from '../../admission/identity-providers/provider-secret.ts';
import { readSecretValue } from '../../admission/references/references.ts';
import { PART_LABEL, type SingleSecret, USERS_SECRET } from '../../admission/references/secret-parts.ts';
import type { KubernetesObject } from './resources.ts';

/** The label selector of the Secrets that are parts of grantry. */
export const PARTS_SELECTOR = `${PART_LABEL} in (verifier,signing-key,pepper,webhook,controller,redis)`;

/** The field selector of the Secrets of identity providers: none of another type is ever seen as one of these. */
export const PROVIDER_SECRETS_SELECTOR = `type=${PROVIDER_SECRET_TYPE}`;

/** The field selector of the Secrets with local users. */
export const USERS_SECRETS_SELECTOR = `type=${USERS_SECRET.type}`;

/** The text of a part's single Secret; undefined when it is missing, has another name or part, or holds no text. */
export function textOfSingle(
  object: KubernetesObject | undefined,
  { name, part, key }: SingleSecret,
): string | undefined {
  if (object?.metadata.name !== name || object.metadata.labels?.[PART_LABEL] !== part) return undefined;
  const value = readSecretValue(object, key, true);
  return value.outcome === 'found' ? value.value : undefined;
}
