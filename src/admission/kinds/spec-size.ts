// The size of an object of a tenant: how many bytes its `spec` may have as JSON. Every process keeps the specs of all, so
// one namespace must not be able to fill the memory of an install with few of them.

import { classOf, fieldsOf } from './manifest.ts';

/** The most bytes of a `spec` as JSON without spaces, in UTF-8. */
const MAX_SPEC_BYTES = 64 * 1024;

/** The fault of a `spec` beyond the bound, for `wholeManifest`. */
export const OVERSIZED = { path: ['spec'], message: `is larger than ${MAX_SPEC_BYTES / 1024} KiB as JSON` };

/** The most bytes of a JWK Set as JSON, wherever it comes from. */
export const JWKS_BYTES_MAX = 32 * 1024;

/** Stands for a `spec` beyond the bound where objects are cached: admission refuses it like the `spec` itself. */
export class OversizedSpec {
  readonly className: string;

  constructor(className: string) {
    this.className = className;
  }
}

/** The bytes of a value as JSON; Infinity for one nested too deeply to be written. */
export function jsonBytes(value: unknown): number {
  try {
    return Buffer.byteLength(JSON.stringify(value) ?? '');
  } catch {
    return Infinity;
  }
}

/** Whether the `spec` of a manifest is beyond the bound. */
export function isOversized(manifest: unknown): boolean {
  const { spec } = fieldsOf(manifest);
  return spec instanceof OversizedSpec || jsonBytes(spec) > MAX_SPEC_BYTES;
}

/** The `spec` of a manifest as caches keep it. */
export function boundedSpec(manifest: unknown): unknown {
  return isOversized(manifest) ? new OversizedSpec(classOf(manifest)) : fieldsOf(manifest).spec;
}
