// All that a token server knows of one OAuthClient of its install: the object, what it came to by itself, what it claims and
// what of it is served. One object for each, because there may be a hundred thousand. It is written by admitted-clients.ts.

import type { ClientVerifiers } from '../admission/client-secrets/client-verifier.ts';
import type { ClientVerdict } from '../admission/clients/admit-client.ts';
import { Contender } from '../admission/clients/client-uniqueness.ts';
import type { Client } from '../oauth/registry/client.ts';
import type { ReadableClient } from './kept-client.ts';

/** What of a client is served. */
export interface ServedState {
  readonly generation: number;
  readonly secretRevision: number | undefined;
}

export class AdmittedClient extends Contender {
  object: ReadableClient;
  /** What it was judged by; undefined until it was. With it and the same verifiers the same client comes of it. */
  judged: ReadableClient | undefined = undefined;
  verifiers: ClientVerifiers | undefined = undefined;
  clientId = '';
  /** What it came to by itself; undefined when it is refused. */
  client: Client | undefined = undefined;
  /** Of its `Ready`. */
  reason = '';
  /** Undefined when it is refused, by itself or among all. */
  served: Client | undefined = undefined;
  /** Whether more was judged since it was published. */
  isUnpublished = false;
  /** Of what `served` follows from; undefined until something was published. */
  #generation: number | undefined = undefined;
  #secretRevision: number | undefined = undefined;

  constructor(object: ReadableClient) {
    super();
    this.object = object;
  }

  get isPublished(): boolean {
    return this.#generation !== undefined;
  }

  /** Whether it is known to be refused. */
  get isRefused(): boolean {
    return this.isPublished && this.served === undefined;
  }

  /** What the present registry serves of it, or refuses; undefined until something was published. */
  get servedState(): ServedState | undefined {
    if (this.#generation === undefined) return undefined;
    return { generation: this.#generation, secretRevision: this.#secretRevision };
  }

  /**
   * @param found what comes of it by itself, by `object` and these verifiers
   * @param found.reason of its `Ready`
   */
  judge(
    verifiers: ClientVerifiers | undefined,
    found: { readonly clientId: string; readonly reason: string; readonly client: Client | undefined },
  ): void {
    this.judged = this.object;
    this.verifiers = verifiers;
    this.clientId = found.clientId;
    this.client = found.client;
    this.reason = found.reason;
  }

  /** What it was judged to be is what is served now, or refused. */
  publish(judged: ReadableClient, client: Client | undefined): void {
    this.isUnpublished = false;
    this.served = client;
    this.#generation = judged.generation;
    this.#secretRevision = this.verifiers?.revision;
  }
}

/** Of `Ready`. */
export function reasonOf({ conditions }: Pick<ClientVerdict, 'conditions'>): string {
  return conditions.at(-1)?.reason ?? 'Pending';
}
