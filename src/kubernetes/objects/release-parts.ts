// The Secrets of the release namespace by their part label: the selector that lists them, and the text of a part that
// has a single Secret. The token server and the controller read them.

import { readSecretValue } from '../../admission/references/references.ts';
import { PART_LABEL, type SingleSecret } from '../../admission/references/secret-parts.ts';
import type { KubernetesObject } from './resources.ts';

/** The selector of the only Secrets a token server lists. */
export const PARTS_SELECTOR = `${PART_LABEL} in (verifier,signing-key,pepper,webhook,controller,redis)`;

/** The text of a part's single Secret; undefined when it is missing, has another name or part, or holds no text. */
export function textOfSingle(
  object: KubernetesObject | undefined,
  { name, part, key }: SingleSecret,
): string | undefined {
  if (object?.metadata.name !== name || object.metadata.labels?.[PART_LABEL] !== part) return undefined;
  const value = readSecretValue(object, key, true);
  return value.outcome === 'found' ? value.value : undefined;
}
