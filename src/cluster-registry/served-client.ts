// A client in the registry of a token server: its own fields, and for all others a template that it shares with clients
// whose other fields are the same. A hundred thousand of them then take little more memory than their names.

import { type OwnField, ownOf, type ReadClient } from '../admission/clients/client-reader.ts';
import { audiencesIn } from '../admission/kinds/default-audience.ts';
import type { OAuthClientSpec } from '../admission/kinds/oauth-client.ts';
import type {
  AssertionSettings,
  CertificateSettings,
  Client,
  IdTokenSettings,
  ResourceReference,
  SenderConstraint,
  ServiceAccountIdentity,
  SignInLimits,
  TokenSettings,
} from '../oauth/registry/client.ts';

const VERIFIER_BYTES = 32;

/** What a client without secrets is authenticated by. */
interface OwnIdentity {
  readonly assertion?: AssertionSettings;
  readonly serviceAccounts?: readonly ServiceAccountIdentity[];
}

export class ServedClient implements Client {
  readonly uid: string;
  readonly clientId: string;
  readonly namespace: string;
  readonly maxState: number;
  /** Undefined where the client id is derived from it. */
  readonly #name: string | undefined;
  readonly #reading: ReadClient;
  readonly #template: Client;
  /**
   * The verifiers as a latin1 string, because a buffer takes four times the memory; or what the client has in place of
   * secrets, where other clients with the same shared fields have another.
   */
  readonly #credentials: string | OwnIdentity;

  /**
   * @param client.name undefined where the client id is the derived one
   * @param client.template a client with the same values of all shared fields
   * @param client.text the only verifier as a latin1 string, where one exists already
   */
  constructor(client: {
    readonly uid: string;
    readonly namespace: string;
    readonly name: string | undefined;
    readonly clientId: string;
    readonly maxState: number;
    readonly reading: ReadClient;
    readonly template: Client;
    readonly credentials: OwnIdentity & { readonly verifiers: readonly Uint8Array[] };
    readonly text?: string | undefined;
  }) {
    const { template, text } = client;
    const { verifiers, assertion, serviceAccounts } = client.credentials;
    this.uid = client.uid;
    this.clientId = client.clientId;
    this.namespace = client.namespace;
    this.maxState = client.maxState;
    this.#name = client.name;
    this.#reading = client.reading;
    this.#template = template;
    // Keys of the manifest, or their address, are in the template: it has the same manifest but for the own fields.
    const isInTemplate = client.reading.shared.auth.privateKeyJwt?.jwksConfigMapRef === undefined;
    if (assertion !== undefined && !isInTemplate) this.#credentials = { assertion };
    else if (serviceAccounts !== undefined) this.#credentials = { serviceAccounts };
    else {
      const isKept = text !== undefined && verifiers.length === 1;
      this.#credentials = isKept ? text : Buffer.concat(verifiers).toString('latin1');
    }
  }

  get name(): string {
    return this.#name ?? this.clientId.slice(this.namespace.length + 1);
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

  get postLogoutRedirectUris(): readonly string[] {
    return this.#own('postLogoutRedirectUris');
  }

  get allowedCorsOrigins(): readonly string[] {
    return this.#own('allowedCorsOrigins');
  }

  get secretVerifiers(): readonly Uint8Array[] {
    const bytes = Buffer.from(typeof this.#credentials === 'string' ? this.#credentials : '', 'latin1');
    const verifiers: Uint8Array[] = [];
    for (let from = 0; from < bytes.length; from += VERIFIER_BYTES) {
      verifiers.push(bytes.subarray(from, from + VERIFIER_BYTES));
    }
    return verifiers;
  }

  get revokeTokensBefore(): number {
    return this.#template.revokeTokensBefore;
  }

  get authMethod(): string {
    return this.#template.authMethod;
  }

  get assertion(): AssertionSettings | undefined {
    return this.#identity?.assertion ?? this.#template.assertion;
  }

  get certificate(): CertificateSettings | undefined {
    return this.#template.certificate;
  }

  get serviceAccounts(): readonly ServiceAccountIdentity[] {
    return this.#identity?.serviceAccounts ?? this.#template.serviceAccounts;
  }

  get senderConstraint(): SenderConstraint {
    return this.#template.senderConstraint;
  }

  get grantTypes(): readonly string[] {
    return this.#template.grantTypes;
  }

  get scopes(): readonly string[] {
    return this.#template.scopes;
  }

  get defaultScopes(): readonly string[] {
    return this.#template.defaultScopes;
  }

  get groups(): readonly string[] {
    return this.#template.groups;
  }

  get backchannelLogoutUri(): string | undefined {
    return this.#own('backchannelLogoutUri');
  }

  get audiences(): readonly string[] {
    // The template may be of another namespace.
    return audiencesIn(this.namespace, this.#reading.shared);
  }

  get resources(): readonly ResourceReference[] {
    return this.#template.resources;
  }

  get defaultAudience(): string | undefined {
    return this.#template.defaultAudience;
  }

  get resourceServerAudiences(): readonly string[] {
    return this.#template.resourceServerAudiences;
  }

  get admittedBy(): Client['admittedBy'] {
    return this.#template.admittedBy;
  }

  get consent(): Client['consent'] {
    return this.#template.consent;
  }

  get signIn(): SignInLimits | undefined {
    return this.#template.signIn;
  }

  get requireState(): boolean {
    return this.#template.requireState;
  }

  get tokens(): TokenSettings {
    return this.#template.tokens;
  }

  get idTokens(): IdTokenSettings {
    return this.#template.idTokens;
  }

  get #identity(): OwnIdentity | undefined {
    return typeof this.#credentials === 'string' ? undefined : this.#credentials;
  }

  #own<Field extends OwnField>(field: Field): OAuthClientSpec[Field] {
    return ownOf(this.#reading, field);
  }
}
