// What the Secrets of the release namespace are to grantry: the label that the token servers list them by.

/**
 * The label whose value says which part of grantry a Secret of the release namespace is: `verifier`, `signing-key`,
 * `pepper` or `webhook`. Token servers list no others.
 */
export const PART_LABEL = 'grantry.dev/part';
