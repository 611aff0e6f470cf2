// Paths to the fields of an object, and their text form in conditions, file positions and reports.

import { quoted } from './quoted.ts';

/** The steps from an object to one of its fields: `['spec', 'redirectUris', 0]`. */
export type FieldPath = readonly (string | number)[];

/** `spec.redirectUris[0]`, `metadata.labels["app.kubernetes.io/name"]`; the empty string for the object itself. */
export function formatPath(path: FieldPath): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (/^[A-Za-z_][A-Za-z0-9_]{0,119}$/.test(step)) text += text === '' ? step : `.${step}`;
    else text += `[${quoted(step)}]`;
  }
  return text;
}
