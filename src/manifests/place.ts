// Positions in a folder of manifests, and the faults at them. Every fault that is printed names its place.

/** A position in a manifest file. */
export interface Place {
  /** The path as the user gave it, joined with the path below it. */
  readonly file: string;
  /** Counted from 1; undefined when the whole file is meant. */
  readonly document: number | undefined;
  /** Counted from 1; undefined when the whole file is meant. */
  readonly line: number | undefined;
  /** For example `spec.redirectUris[0]`; undefined when the whole object is meant. */
  readonly field: string | undefined;
}

/** A fault in a file. `reason` is a CamelCase word as in conditions. */
export interface ManifestFault {
  readonly place: Place;
  readonly reason: string;
  readonly message: string;
}

/**
 * `clients/web.yaml:14 (document 2, spec.scopes[0])`: begins as compiler messages do, so that terminals can link to it.
 * Never begins with `::`, also after white space, which starts a command in logs of GitHub workflows.
 */
export function formatPlace(place: Place): string {
  const details = [
    place.document === undefined ? undefined : `document ${place.document}`,
    place.field === undefined ? undefined : place.field,
  ].filter((detail) => detail !== undefined);
  const line = place.line === undefined ? '' : `:${place.line}`;
  const file = /^\s*::/.test(place.file) ? `./${place.file}` : place.file;
  return `${file}${line}${details.length === 0 ? '' : ` (${details.join(', ')})`}`;
}
