// The parameters of one OAuth request, from a query or a form body, after strict percent-decoding (`http/server/form.ts`).
// A known parameter may be sent once; an empty value is treated as absent; unknown parameters are ignored (RFC 6749 §3.1,
// §3.2).

import { OAuthError } from '../ports/error.ts';

/** Parameters in wire order of first appearance, each with all its values as sent. */
export type RawParameters = ReadonlyMap<string, readonly string[]>;

/** Parameters an endpoint knows; `resource` alone may repeat (RFC 8707 §2). */
export class Parameters {
  readonly #values: RawParameters;

  constructor(values: RawParameters) {
    this.#values = values;
  }

  /**
   * The value, or undefined when absent or empty. The first value of a repeated parameter: see
   * {@link rejectDuplicates}.
   */
  get(name: string): string | undefined {
    return this.#values.get(name)?.[0] || undefined;
  }

  /** Whether the parameter was sent at all, also empty. */
  has(name: string): boolean {
    return this.#values.has(name);
  }

  /** All non-empty values of a parameter that may repeat. */
  all(name: string): readonly string[] {
    return (this.#values.get(name) ?? []).filter((value) => value !== '');
  }

  /** Each value as sent, with its name. */
  pairs(): readonly [name: string, value: string][] {
    return [...this.#values].flatMap(([name, values]) => values.map((value): [string, string] => [name, value]));
  }

  /** The first of `known` that was sent more than once, also when a value is empty or repeated. */
  firstDuplicate(known: Iterable<string>): string | undefined {
    if (!this.#hasDuplicates()) return undefined;
    for (const name of known) {
      if (name !== 'resource' && (this.#values.get(name)?.length ?? 0) > 1) return name;
    }
    return undefined;
  }

  #hasDuplicates(): boolean {
    for (const values of this.#values.values()) if (values.length > 1) return true;
    return false;
  }

  /** @throws OAuthError invalid_request when one of `known` was sent more than once. */
  rejectDuplicates(known: Iterable<string>): void {
    const name = this.firstDuplicate(known);
    if (name !== undefined) {
      throw new OAuthError('invalid_request', `${name} is included more than once.`, { reason: 'duplicate_parameter' });
    }
  }

  /**
   * The value of a required parameter.
   * @throws OAuthError invalid_request with the reason `<name>_missing` when absent or empty.
   */
  require(name: string): string {
    const value = this.get(name);
    if (value === undefined) throw parameterMissing(name);
    return value;
  }
}

/** The error for a required parameter that was not sent: `invalid_request` with the reason `<name>_missing`. */
export function parameterMissing(name: string): OAuthError {
  return new OAuthError('invalid_request', `${name} is missing.`, { reason: `${name}_missing` });
}
