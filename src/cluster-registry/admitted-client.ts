// The state of one OAuthClient in a token server: the object, the result of its judgement, its claims, and the client
// that is served. One object for each client, because there may be a hundred thousand. admitted-clients.ts writes it.

import type { ClientVerifiers } from '../admission/client-secrets/client-verifier.ts';
import type { ClientVerdict } from '../admission/clients/admit-client.ts';
import { Contender } from '../admission/clients/client-uniqueness.ts';
import type { Client } from '../oauth/registry/client.ts';
import type { ReadableClient } from './cached-objects.ts';

/** The generation and the secret revision of a client that the registry holds. */
export interface ServedState {
  readonly generation: number;
  readonly secretRevision: number | undefined;
}

export class AdmittedClient extends Contender {
  object: ReadableClient;
  /** The object of the latest judgement; undefined before the first. It and the same verifiers give the same client. */
  judged: ReadableClient | undefined = undefined;
  verifiers: ClientVerifiers | undefined = undefined;
  clientId = '';
  /** The result of its own judgement; undefined when it is refused. */
  client: Client | undefined = undefined;
  /** The reason of its condition `Ready`. */
  reason = '';
  /** The client in the registry; undefined when it is refused, by its own judgement or by the uniqueness rules. */
  served: Client | undefined = undefined;
  /** Whether its latest judgement is not published yet. */
  isUnpublished = false;
  /** Of the object behind `served`; undefined before the first publication. */
  #generation: number | undefined = undefined;
  #secretRevision: number | undefined = undefined;

  constructor(object: ReadableClient) {
    super();
    this.object = object;
  }

  get namespace(): string {
    return this.object.metadata.namespace ?? '';
  }

  get isPublished(): boolean {
    return this.#generation !== undefined;
  }

  /** Whether it is published as refused. */
  get isRefused(): boolean {
    return this.isPublished && this.served === undefined;
  }

  /** The state that the present registry serves or refuses; undefined before the first publication. */
  get servedState(): ServedState | undefined {
    if (this.#generation === undefined) return undefined;
    return { generation: this.#generation, secretRevision: this.#secretRevision };
  }

  /**
   * Stores a judgement.
   * @param found the result for `object` and these verifiers
   * @param found.reason of the condition `Ready`
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

  /** Records what the registry serves now. @param client undefined when it is refused */
  publish(judged: ReadableClient, client: Client | undefined): void {
    this.isUnpublished = false;
    this.served = client;
    this.#generation = judged.metadata.generation ?? 1;
    this.#secretRevision = this.verifiers?.revision;
  }
}

/** The reason of the condition `Ready`. */
export function reasonOf({ conditions }: Pick<ClientVerdict, 'conditions'>): string {
  return conditions.at(-1)?.reason ?? 'Pending';
}
