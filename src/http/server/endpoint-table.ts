// Finds the endpoint of a path regardless of the method, to distinguish 405 from 404. Exact in case, slash and
// encoding.

import type { Endpoint } from './endpoint.ts';

export class EndpointTable {
  readonly #exact: ReadonlyMap<string, Endpoint>;
  readonly #patterns: readonly { readonly segments: readonly string[]; readonly endpoint: Endpoint }[];

  /** @param endpoints with absolute paths; a `:name` segment stands for one or more characters other than `/` */
  constructor(endpoints: readonly Endpoint[]) {
    this.#exact = new Map(endpoints.filter(isExact).map((endpoint) => [endpoint.path, endpoint]));
    this.#patterns = endpoints
      .filter((endpoint) => !isExact(endpoint))
      .map((endpoint) => ({ segments: endpoint.path.split('/'), endpoint }));
  }

  /** @param path of the request, without its query */
  find(path: string): Endpoint | undefined {
    const exact = this.#exact.get(path);
    if (exact !== undefined || this.#patterns.length === 0) return exact;
    const segments = path.split('/');
    return this.#patterns.find((candidate) => matches(candidate.segments, segments))?.endpoint;
  }
}

function isExact(endpoint: Endpoint): boolean {
  return !endpoint.path.includes('/:');
}

function matches(pattern: readonly string[], segments: readonly string[]): boolean {
  return (
    pattern.length === segments.length &&
    pattern.every((part, index) => (part.startsWith(':') ? segments[index] !== '' : part === segments[index]))
  );
}
