// What the application needs of a library that signs people in.

import type { Request, Router } from 'express';
import type { Configuration } from 'openid-client';
import type { SignIns } from './sign-ins.ts';

/** The name of the person, and access to their notes. */
export const SCOPE = 'openid profile default/notes.read default/notes.write';

export interface SignInWayOptions {
  readonly config: Configuration;
  readonly clientSecret: string;
  /** The address of the application, without a path. */
  readonly origin: string;
  /** Seals the cookies of the browser. */
  readonly secret: string;
  readonly signIns: SignIns;
}

export interface SignInWay {
  /** Its own pages, and what all other pages stand behind. */
  readonly routes: Router;
  /** Where the form of a sign-in is posted to. */
  readonly action: string;
  /** The id of the sign-in that the session of the browser has; it may be over. */
  readonly signInOf: (request: Request) => Promise<string | undefined>;
}

/** A sign-in that came to nothing, in a sentence for the person. */
export class Problem extends Error {}
