// JSON Web Keys (RFC 7517) of other parties.

/** The public members that verification reads. No private member is among them. */
export interface PublicJwk {
  readonly kty: string;
  readonly use?: string | undefined;
  readonly key_ops?: readonly string[] | undefined;
  readonly alg?: string | undefined;
  readonly kid?: string | undefined;
  readonly crv?: string | undefined;
  readonly x?: string | undefined;
  readonly y?: string | undefined;
  readonly n?: string | undefined;
  readonly e?: string | undefined;
  readonly x5c?: readonly string[] | undefined;
}
