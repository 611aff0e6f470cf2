// What the Secrets of the release namespace are to grantry: the label that the token servers list them by, and those of
// which there is one.

/**
 * The label whose value says which part of grantry a Secret of the release namespace is: `verifier`, `signing-key`,
 * `pepper`, `webhook` or `controller`. Token servers list no others.
 */
export const PART_LABEL = 'grantry.dev/part';

/** A Secret of which there is one: its name, the value of its label, and the key its text stands under. */
export interface SingleSecret {
  readonly name: string;
  readonly part: 'pepper' | 'webhook' | 'controller';
  readonly key: string;
}

/** The pepper, one value a line: the first makes, all are accepted. */
export const PEPPER_SECRET: SingleSecret = { name: 'grantry-pepper', part: 'pepper', key: 'pepper' };

/** What alerts are signed with, one value a line: all of them sign. */
export const WEBHOOK_SECRET: SingleSecret = { name: 'grantry-webhook', part: 'webhook', key: 'secret' };

/** What the controller proves itself to replicas with: see controller-proof.ts. */
export const CONTROLLER_SECRET: SingleSecret = { name: 'grantry-controller-proof', part: 'controller', key: 'key' };
