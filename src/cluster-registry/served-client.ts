// A client as the registry of a token server holds it: what is its own, and for all the rest a client that is like it. A
// hundred thousand of them then take little more room than their names.

import { type OwnField, ownOf, type ReadClient } from '../admission/clients/client-reader.ts';
import type { OAuthClientSpec } from '../admission/kinds/oauth-client.ts';
import type { Client, TokenSettings } from '../oauth/registry/client.ts';

const VERIFIER_BYTES = 32;

export class ServedClient implements Client {
  readonly uid: string;
  readonly clientId: string;
  readonly #reading: ReadClient;
  readonly #like: Client;
  /** As text, a character a byte: a buffer takes four times the room. */
  readonly #verifiers: string;

  /**
   * @param client.like the same in all that is not each one's own
   * @param client.text the only one of these verifiers as text, where it is kept already
   */
  constructor(client: {
    readonly uid: string;
    readonly clientId: string;
    readonly reading: ReadClient;
    readonly like: Client;
    readonly verifiers: readonly Uint8Array[];
    readonly text?: string | undefined;
  }) {
    const { verifiers, text } = client;
    this.uid = client.uid;
    this.clientId = client.clientId;
    this.#reading = client.reading;
    this.#like = client.like;
    const isKept = text !== undefined && verifiers.length === 1;
    this.#verifiers = isKept ? text : Buffer.concat(verifiers).toString('latin1');
  }

  get displayName(): string {
    return this.#own('displayName') ?? this.clientId;
  }

  get clientUri(): string | undefined {
    return this.#own('clientUri');
  }

  get policyUri(): string | undefined {
    return this.#own('policyUri');
  }

  get tosUri(): string | undefined {
    return this.#own('tosUri');
  }

  get redirectUris(): readonly string[] {
    return this.#own('redirectUris');
  }

  get allowedCorsOrigins(): readonly string[] {
    return this.#own('allowedCorsOrigins');
  }

  get secretVerifiers(): readonly Uint8Array[] {
    const bytes = Buffer.from(this.#verifiers, 'latin1');
    const verifiers: Uint8Array[] = [];
    for (let from = 0; from < bytes.length; from += VERIFIER_BYTES) {
      verifiers.push(bytes.subarray(from, from + VERIFIER_BYTES));
    }
    return verifiers;
  }

  get revokeTokensBefore(): number {
    return this.#like.revokeTokensBefore;
  }

  get authMethod(): string {
    return this.#like.authMethod;
  }

  get grantTypes(): readonly string[] {
    return this.#like.grantTypes;
  }

  get scopes(): readonly string[] {
    return this.#like.scopes;
  }

  get defaultScopes(): readonly string[] {
    return this.#like.defaultScopes;
  }

  get audiences(): readonly string[] {
    return this.#like.audiences;
  }

  get defaultAudience(): string | undefined {
    return this.#like.defaultAudience;
  }

  get resourceServerAudiences(): readonly string[] {
    return this.#like.resourceServerAudiences;
  }

  get consent(): Client['consent'] {
    return this.#like.consent;
  }

  get requireState(): boolean {
    return this.#like.requireState;
  }

  get tokens(): TokenSettings {
    return this.#like.tokens;
  }

  #own<Field extends OwnField>(field: Field): OAuthClientSpec[Field] {
    return ownOf(this.#reading, field);
  }
}
