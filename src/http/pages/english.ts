// The texts of the pages in English.

import type { Texts } from './texts.ts';

const REPORT =
  'Go back to the application and try once more. If it happens again, contact the people who run the application and give them the request id below.';

export const ENGLISH: Texts = {
  language: 'en',
  login: {
    title: 'Sign in',
    lead: (client) => `to continue to ${client}`,
    leadToAccount: 'to see your account',
    username: 'Username',
    password: 'Password',
    submit: 'Sign in',
    usernameMissing: 'Enter your username.',
    passwordMissing: 'Enter your password.',
    byPassword: 'Sign in with a password',
    signInBy: (provider) => `Sign in with ${provider}`,
    problems: {
      missing: 'Your username or password is missing',
      wrong: { title: () => 'The username or the password is not right', advice: 'Check both, then try again.' },
      tooMany: {
        title: 'There were too many attempts',
        advice: (seconds) => `Wait ${duration(seconds)}, then try again.`,
      },
      busy: {
        title: () => 'Too many people are signing in right now',
        advice: 'Wait a few seconds, then try again.',
      },
      outdated: {
        title: () => 'The sign-in cannot be completed right now',
        advice: 'Wait a few seconds, then try again.',
      },
      cancelled: {
        title: (provider) => `The sign-in at ${provider} was not finished`,
        advice: 'Try again, and finish it there.',
      },
      unavailable: {
        title: (provider) => `${provider} cannot be reached right now`,
        advice: 'Wait a little, then try again.',
      },
      invalid: {
        title: (provider) => `The answer of ${provider} cannot be used`,
        advice: 'Try again. If it happens again, ask the operators of this server.',
      },
      notPermitted: {
        title: (username, provider) => `${username} at ${provider} may not sign in here`,
        advice: 'Sign in with another account, or ask the operators of this server.',
      },
      notForPerson: {
        title: (username, provider) => `${username} at ${provider} may not use this application`,
        advice: 'Sign in with another account.',
      },
      notForLocal: {
        title: (username) => `${username} may not use this application`,
        advice: 'Sign in with another account.',
      },
      notOpen: {
        title: () => 'This way to sign in is not open to this application',
        advice: 'Choose another one.',
      },
    },
    noWay: 'There is no way to sign in to this application yet. Ask the people who run it.',
    closedForNow: 'The place where you sign in cannot be reached right now. Wait a little, then reload this page.',
    note: (host) => `Enter your password only on ${host}. The application never sees it.`,
  },
  consent: {
    title: (client) => `Let ${client} use your account?`,
    signedInAs: 'Signed in as',
    otherAccount: 'Use another account',
    wants: 'It asks for',
    wantsMore: 'It asks for more than before',
    alreadyHas: 'You already allowed',
    at: 'Where this works',
    goesTo: 'Your answer is sent to',
    startedByYou: 'Allow it only if you have just started it yourself.',
    claims: { name: 'Your name', address: 'Your email address', groups: 'Your groups' },
    details: 'Details',
    andMore: (count) => `and ${count} more`,
    onlySome: 'Only some accounts may use this application, and it keeps access only while yours is one of them.',
    howLong: 'How long',
    lasts: { sign_out: 'Until you sign out', revocation: 'Until access is revoked' },
    lastsDetail: {
      sign_out: 'The application keeps it without asking you again while you are signed in here.',
      revocation: 'The application keeps it without asking you again, also while you are signed out.',
    },
    revokeThere: 'See and revoke access',
    allow: 'Allow',
    deny: 'Deny',
    website: 'Website',
    privacy: 'Privacy policy',
    terms: 'Terms of service',
    scopes: {
      openid: 'Know which account is yours',
      profile: 'See your name and profile',
      email: 'See your email address',
      groups: 'See which groups you are in',
      offline_access: 'Keep access while you are signed out',
    },
  },
  logout: {
    question: 'Sign out?',
    signedInAs: (username) => `You are signed in as ${username}.`,
    submit: 'Sign out',
    done: 'You are signed out',
    doneAdvice: 'You can close this window.',
    signInAgain: 'Sign in again',
  },
  account: {
    titles: {
      overview: 'Your account',
      sessions: 'Where you are signed in',
      applications: 'Applications with access',
    },
    tabs: { overview: 'Account', sessions: 'Sessions', applications: 'Applications' },
    pages: 'Pages of your account',
    questions: { everywhere: 'Sign out everywhere?', session: 'End this session?', revoke: 'Revoke access?' },
    cancel: 'Cancel',
    email: 'Email address',
    signOut: 'Sign out',
    signOutDetail:
      'Signs that browser out, and ends what applications hold for this session. Access that lasts longer stays, and is listed under Applications.',
    signOutHere: 'Sign out here',
    signOutEverywhere: 'Sign out everywhere',
    everywhereDetail:
      'Signs you out in every browser, and ends what applications may do for you until you sign in to them again. Use it when you have lost a device.',
    thisBrowser: 'This browser',
    otherBrowser: 'Another browser',
    address: 'Address',
    signedInAt: 'Signed in',
    signedInBy: 'Signed in with',
    password: 'password',
    newestSessions: (count) => `There are more. These are the newest ${count}.`,
    noApplications: 'No application has access to your account.',
    unknownApplication: 'An application that is out of service',
    unknownDetail: 'It may get its access back when it returns, unless you revoke it.',
    letInByDefault: 'Your organization lets it in without asking you.',
    mayDo: 'What you allowed',
    firstUsed: 'First used',
    lastUsed: 'Last used',
    neverUsed: 'Not used yet',
    revoke: 'Revoke access',
    revokeDetail:
      'When you revoke access, the application gets nothing more. To use it again you sign in and are asked for your consent. It may keep what it has already got, and may keep you signed in on its own side.',
    livesOn: (seconds) =>
      `After that, services that check its access tokens on their own may accept them for up to ${duration(seconds)}.`,
    revoked: (client) => `${client} has no access any more.`,
    pageOf: (page, pages) => `Page ${page} of ${pages}`,
    next: 'Next page',
    previous: 'Previous page',
  },
  destination: {
    thisComputer: (host) => `a program on this computer (${host})`,
    appOnDevice: (scheme) => `an app on this device (${scheme})`,
  },
  error: {
    requestId: 'Request id',
    goTo: (destination) => `Go to ${destination}`,
    notAsserted: {
      title: 'The request of the application was refused',
      message: 'The application that sent you here asked for something that it may not have. You are not signed in.',
      advice: 'Go on only if you know this address and were there before:',
    },
    client: {
      title: 'This application cannot be used here',
      message: 'The application that sent you here is not registered at this server, or was refused by it.',
      advice: REPORT,
    },
    application: {
      title: 'The request of the application is not valid',
      message: 'Something is missing or wrong in the request of the application that sent you here.',
      advice: REPORT,
    },
    redirectUri: {
      title: 'The address to return to is not registered',
      message: 'The application asked us to send you to an address that is not registered for it, so we stopped here.',
      advice: REPORT,
    },
    startAgain: {
      title: 'This page cannot be used any more',
      message: 'It is too old, was used already, or belongs to another browser.',
      advice: 'Go back to the application and sign in from there. You can close this page.',
    },
    account: {
      title: 'Nothing has changed',
      message: 'The page that you used is too old, or belongs to another browser.',
      advice: 'Open the page of your account again, and try once more.',
    },
    tooMany: {
      title: 'There were too many requests',
      message: 'Too many requests came from your network within a short time.',
      advice: 'Wait a minute, then try again.',
    },
    unavailable: {
      title: 'The server cannot finish this right now',
      message: 'Something that it needs cannot be reached.',
      advice: 'Wait a few seconds and reload this page, or go back to the application and sign in from there.',
    },
    notFound: {
      title: 'There is no page at this address',
      message: 'The address is mistyped, or the link that you followed is wrong.',
      advice: 'Check the address, or go back to the application you came from.',
    },
    badRequest: {
      title: 'The request has a form that we do not accept',
      message: 'Your browser, or the application that sent you here, sent something that we cannot read.',
      advice: 'Go back to the application and try once more.',
    },
    internal: {
      title: 'The server failed',
      message: 'The fault is ours, not yours.',
      advice:
        'Try again in a moment. If it happens again, contact an administrator and give them the request id below.',
    },
  },
  footer: 'Authorization by grantry',
};

function duration(seconds: number): string {
  if (seconds > 2 * 3600) return `${Math.ceil(seconds / 3600)} hours`;
  if (seconds > 120) return `${Math.ceil(seconds / 60)} minutes`;
  return seconds === 1 ? 'one second' : `${seconds} seconds`;
}
