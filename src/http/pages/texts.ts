// The texts that the pages have in every language. Each catalogue is a file of its own: english.ts, german.ts.

/** The texts of an error page: what happened, and what the person can do. */
export interface ErrorText {
  readonly title: string;
  readonly message: string;
  readonly advice: string;
}

/** The catalogue of one language. */
export interface Texts {
  /** The BCP 47 tag for `lang`. */
  readonly language: string;
  readonly login: {
    readonly title: string;
    readonly lead: (client: string) => string;
    readonly username: string;
    readonly password: string;
    readonly submit: string;
    readonly errorTitle: string;
    readonly wrong: string;
    readonly usernameMissing: string;
    readonly passwordMissing: string;
    readonly tooMany: (seconds: number) => string;
    readonly busy: string;
    readonly outdated: string;
    readonly note: (host: string) => string;
  };
  readonly consent: {
    readonly title: (client: string) => string;
    readonly signedInAs: string;
    readonly otherAccount: string;
    readonly wants: string;
    readonly wantsMore: string;
    readonly alreadyHas: string;
    readonly at: string;
    readonly goesTo: string;
    readonly startedByYou: string;
    readonly howLong: string;
    readonly untilRevoked: string;
    readonly untilRevokedDetail: string;
    readonly allow: string;
    readonly deny: string;
    readonly website: string;
    readonly privacy: string;
    readonly terms: string;
    /** Scopes that mean the same everywhere (OpenID Connect Core §5.4, §11). */
    readonly scopes: Readonly<Record<string, string>>;
  };
  readonly destination: {
    readonly thisComputer: (host: string) => string;
    readonly appOnDevice: (scheme: string) => string;
  };
  readonly error: {
    readonly requestId: string;
    /** The link to an answer. */
    readonly goTo: (destination: string) => string;
    readonly notVouched: ErrorText;
    readonly application: ErrorText;
    readonly redirectUri: ErrorText;
    readonly startAgain: ErrorText;
    readonly tooMany: ErrorText;
    readonly unavailable: ErrorText;
    readonly notFound: ErrorText;
    readonly badRequest: ErrorText;
    readonly internal: ErrorText;
  };
  readonly footer: string;
}
