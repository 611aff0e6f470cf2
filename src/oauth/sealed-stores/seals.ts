// The MACs of records as the stores need them: made, and verified.

import type { RecordFields, RecordKind } from '../tokens/record-macs.ts';

/** Made once of the peppers. */
export interface Seals {
  make(kind: RecordKind, fields: RecordFields): string;
  isRight(mac: string | undefined, kind: RecordKind, fields: RecordFields): boolean;
  /** Reports a record that no holder of a pepper has made. */
  report(kind: RecordKind, grantId?: string): void;
  /** As `isRight`, and reports what is not. */
  check(mac: string | undefined, kind: RecordKind, fields: RecordFields, grantId?: string): boolean;
}

/** A field that only some records have comes last: the MAC of the others is the same with and without it. */
export function present(value: string | undefined): readonly string[] {
  return value === undefined ? [] : [value];
}
