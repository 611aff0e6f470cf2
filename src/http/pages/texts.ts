// The texts that the pages have in every language. Each catalogue is a file of its own, named after its language.

/** The texts of an error page: what happened, more about it, and what the person can do. */
export interface ErrorText {
  readonly title: string;
  readonly message: string;
  readonly advice: string;
}

/** Why the login page is shown again: what happened, by the names that it is about, and what the person can do. */
interface LoginProblemText<Names extends readonly string[] = []> {
  readonly title: (...names: Names) => string;
  readonly advice: string;
}

/** The catalogue of one language. */
export interface Texts {
  /** The BCP 47 tag for `lang`. */
  readonly language: string;
  readonly login: {
    readonly title: string;
    readonly lead: (client: string) => string;
    readonly leadToAccount: string;
    readonly username: string;
    readonly password: string;
    readonly submit: string;
    readonly usernameMissing: string;
    readonly passwordMissing: string;
    /** The summary of the form for a password, below the providers. */
    readonly byPassword: string;
    readonly signInBy: (provider: string) => string;
    readonly problems: {
      /** The advice is in the list of the empty fields. */
      readonly missing: string;
      readonly wrong: LoginProblemText;
      readonly tooMany: { readonly title: string; readonly advice: (seconds: number) => string };
      readonly busy: LoginProblemText;
      readonly outdated: LoginProblemText;
      readonly cancelled: LoginProblemText<[provider: string]>;
      readonly unavailable: LoginProblemText<[provider: string]>;
      readonly invalid: LoginProblemText<[provider: string]>;
      readonly notPermitted: LoginProblemText<[username: string, provider: string]>;
      /** The application is not for an account at a provider, and for a local one. */
      readonly notForPerson: LoginProblemText<[username: string, provider: string]>;
      readonly notForLocal: LoginProblemText<[username: string]>;
      /** The application is not for this way to sign in. */
      readonly notOpen: LoginProblemText;
    };
    /** The application is for no way to sign in that there is. */
    readonly noWay: string;
    /** No provider can be used for now. */
    readonly closedForNow: string;
    /** At the end of the form for a password. */
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
    /** Before the value that the client learns of the person. */
    readonly claims: Readonly<Record<'name' | 'address' | 'groups', string>>;
    /** The summary of scopes and identifiers. */
    readonly details: string;
    /** Behind the first groups. */
    readonly andMore: (count: number) => string;
    /** The application is for some people. */
    readonly onlySome: string;
    readonly howLong: string;
    /** By what ends the access. */
    readonly lasts: Readonly<Record<'sign_out' | 'revocation', string>>;
    readonly lastsDetail: Readonly<Record<'sign_out' | 'revocation', string>>;
    /** The link to the page where access is revoked. */
    readonly revokeThere: string;
    readonly allow: string;
    readonly deny: string;
    readonly website: string;
    readonly privacy: string;
    readonly terms: string;
    /** Scopes that mean the same everywhere (OpenID Connect Core §5.4, §11). */
    readonly scopes: Readonly<Record<string, string>>;
  };
  readonly logout: {
    readonly question: string;
    readonly signedInAs: (username: string) => string;
    readonly submit: string;
    readonly done: string;
    readonly doneAdvice: string;
    readonly signInAgain: string;
  };
  readonly account: {
    readonly titles: Readonly<Record<'overview' | 'sessions' | 'applications', string>>;
    /** What the tabs of the pages say: one short word each. */
    readonly tabs: Readonly<Record<'overview' | 'sessions' | 'applications', string>>;
    /** The name of the row of tabs. */
    readonly pages: string;
    /** The titles of the questions before something ends. */
    readonly questions: Readonly<Record<'everywhere' | 'session' | 'revoke', string>>;
    readonly cancel: string;
    readonly email: string;
    readonly signOut: string;
    /** What the end of one session means. */
    readonly signOutDetail: string;
    readonly signOutHere: string;
    readonly signOutEverywhere: string;
    readonly everywhereDetail: string;
    readonly thisBrowser: string;
    readonly otherBrowser: string;
    readonly address: string;
    readonly signedInAt: string;
    /** Before the name of an identity provider, or the next. */
    readonly signedInBy: string;
    readonly password: string;
    readonly newestSessions: (count: number) => string;
    readonly noApplications: string;
    readonly unknownApplication: string;
    readonly unknownDetail: string;
    readonly letInByDefault: string;
    readonly mayDo: string;
    readonly firstUsed: string;
    readonly lastUsed: string;
    readonly neverUsed: string;
    readonly revoke: string;
    /** What the end of access means for any application. */
    readonly revokeDetail: string;
    /** How long tokens that an API checks by itself stay good; seconds. */
    readonly livesOn: (seconds: number) => string;
    readonly revoked: (client: string) => string;
    readonly pageOf: (page: number, pages: number) => string;
    readonly next: string;
    readonly previous: string;
  };
  readonly destination: {
    readonly thisComputer: (host: string) => string;
    readonly appOnDevice: (scheme: string) => string;
  };
  readonly error: {
    readonly requestId: string;
    /** The link to an answer. */
    readonly goTo: (destination: string) => string;
    readonly notAsserted: ErrorText;
    /** A client that is not registered, or may not sign people in. */
    readonly client: ErrorText;
    /** A request that only its client can correct. */
    readonly application: ErrorText;
    readonly redirectUri: ErrorText;
    readonly startAgain: ErrorText;
    /** A form of the account page that is rejected. */
    readonly account: ErrorText;
    readonly tooMany: ErrorText;
    readonly unavailable: ErrorText;
    readonly notFound: ErrorText;
    readonly badRequest: ErrorText;
    readonly internal: ErrorText;
  };
  readonly footer: string;
}
