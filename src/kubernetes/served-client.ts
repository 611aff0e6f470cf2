// A client as the registry of a token server holds it: what is its own, and for all the rest a client that is like it. A
// hundred thousand of them then take little more room than their names.

import type { Client, TokenSettings } from '../oauth/client.ts';

const VERIFIER_BYTES = 32;
const NONE: readonly string[] = [];

export class ServedClient implements Client {
  readonly uid: string;
  readonly clientId: string;
  readonly displayName: string;
  readonly clientUri: string | undefined;
  readonly policyUri: string | undefined;
  readonly tosUri: string | undefined;
  readonly redirectUris: readonly string[];
  readonly allowedCorsOrigins: readonly string[];
  readonly #like: Client;
  /** As text, a character a byte: a buffer takes four times the room. */
  readonly #verifiers: string;

  /**
   * @param like the same in all that is not this one's own
   * @param verifier the client's only verifier as text, where it is kept already
   */
  constructor(client: Client, like: Client, verifier?: string) {
    this.uid = client.uid;
    this.clientId = client.clientId;
    this.displayName = client.displayName;
    this.clientUri = client.clientUri;
    this.policyUri = client.policyUri;
    this.tosUri = client.tosUri;
    this.redirectUris = client.redirectUris.length === 0 ? NONE : client.redirectUris;
    this.allowedCorsOrigins = client.allowedCorsOrigins.length === 0 ? NONE : client.allowedCorsOrigins;
    this.#like = like;
    const isKept = verifier !== undefined && client.secretVerifiers.length === 1;
    this.#verifiers = isKept ? verifier : Buffer.concat(client.secretVerifiers).toString('latin1');
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
}
