// The port of upstream sign-in: an identity provider is sent a browser, and its answer about the person is read.

/** A person as a provider asserts them, mapped and validated by the rules of its manifest. */
export interface AssertedPerson {
  /** `usr_…`, of the provider's issuer and its own subject: an address or a name identifies no person. */
  readonly subject: string;
  readonly username: string;
  readonly displayName: string | undefined;
  /** A verified address. */
  readonly email: string | undefined;
  /** An address that is not verified: no client learns of it. */
  readonly unverifiedEmail?: string | undefined;
  readonly groups: readonly string[];
  /** When the person signed in at the provider, epoch milliseconds; undefined where it does not say. */
  readonly authTime: number | undefined;
}

/** What an authorization request asks of the provider. */
export interface SignInRequest {
  readonly callbackUrl: string;
  /** The person is to sign in again, or to choose an account. */
  readonly prompt: 'login' | 'select_account' | undefined;
  /** The greatest age of the sign-in, in seconds. */
  readonly maxAge: number | undefined;
  readonly loginHint: string | undefined;
  readonly uiLocales: string | undefined;
}

/** What has to come back to the callback, and is known to the browser alone. */
export interface PendingSignIn {
  /** Random. */
  readonly state: string;
  readonly nonce: string;
  readonly codeVerifier: string;
}

/** Where the browser goes. */
export interface StartedSignIn extends PendingSignIn {
  readonly location: string;
}

/** A browser that came back. */
export interface Return {
  readonly pending: PendingSignIn;
  readonly callbackUrl: string;
  /** As received, each name once. */
  readonly parameters: URLSearchParams;
}

/** Why a person who is known to the provider may not sign in. */
export type AssertionRefusal = 'person_not_permitted' | 'email_not_verified' | 'groups_overage' | 'too_many_groups';

/** What came of a sign-in at a provider. `detail`: what failed, for the log line only; no text of the provider. */
export type ProviderAnswer =
  | {
      readonly outcome: 'asserted';
      readonly person: AssertedPerson;
      /** The groups of the person were too many for the answer, so the person has none here. */
      readonly isOverage: boolean;
      /** How many groups the person does not get because of a comma or another character in their names. */
      readonly groupsLeftOut: number;
    }
  /** The person, or the provider in the person's place, did not finish it. */
  | { readonly outcome: 'cancelled' }
  /** The provider cannot be reached, or says that it cannot answer now. */
  | { readonly outcome: 'unavailable'; readonly detail?: string | undefined }
  /** The answer cannot be believed, or has no use. */
  | { readonly outcome: 'invalid'; readonly detail?: string | undefined }
  | { readonly outcome: 'refused'; readonly reason: AssertionRefusal; readonly username: string };

/** One identity provider. */
export interface UpstreamProvider {
  /** Where a browser signs in; `unavailable` while nothing is known of the provider's endpoints. */
  begin(request: SignInRequest): Promise<StartedSignIn | 'unavailable'>;
  /** Redeems what came back. It throws nothing, and keeps no token of the provider. */
  finish(returned: Return): Promise<ProviderAnswer>;
}
