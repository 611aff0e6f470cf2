// The texts of the pages in German.

import type { Texts } from './texts.ts';

const REPORT =
  'Gehen Sie zur Anwendung zurück, und versuchen Sie es noch einmal. Geschieht es wieder, wenden Sie sich an den Betreiber der Anwendung, und nennen Sie ihm die Nummer der Anfrage.';

export const GERMAN: Texts = {
  language: 'de',
  login: {
    title: 'Anmelden',
    lead: (client) => `um mit ${client} fortzufahren`,
    username: 'Benutzername',
    password: 'Passwort',
    submit: 'Anmelden',
    errorTitle: 'Sie sind noch nicht angemeldet',
    wrong: 'Der Benutzername oder das Passwort ist nicht richtig.',
    usernameMissing: 'Geben Sie Ihren Benutzernamen ein.',
    passwordMissing: 'Geben Sie Ihr Passwort ein.',
    tooMany: (seconds) =>
      `Es gab zu viele Versuche. Warten Sie ${duration(seconds)}, und versuchen Sie es dann noch einmal.`,
    busy: 'Gerade melden sich viele Menschen an. Warten Sie einige Sekunden, und versuchen Sie es dann noch einmal.',
    outdated:
      'Die Anmeldung kann gerade nicht abgeschlossen werden. Warten Sie einige Sekunden, und versuchen Sie es dann noch einmal.',
    note: (host) => `Geben Sie Ihr Passwort nur auf ${host} ein. Die Anwendung sieht es nie.`,
  },
  consent: {
    title: (client) => `Darf ${client} Ihr Konto verwenden?`,
    signedInAs: 'Angemeldet als',
    otherAccount: 'Anderes Konto verwenden',
    wants: 'Angefragt wird',
    wantsMore: 'Angefragt wird mehr als bisher',
    alreadyHas: 'Schon erlaubt haben Sie',
    at: 'Wo das gilt',
    goesTo: 'Ihre Antwort geht an',
    startedByYou: 'Erlauben Sie es nur, wenn Sie es gerade selbst gestartet haben.',
    howLong: 'Wie lange',
    untilRevoked: 'Bis der Zugriff widerrufen wird',
    untilRevokedDetail: 'Die Anwendung behält ihn, ohne noch einmal zu fragen, auch während Sie abgemeldet sind.',
    allow: 'Erlauben',
    deny: 'Ablehnen',
    website: 'Website',
    privacy: 'Datenschutzerklärung',
    terms: 'Nutzungsbedingungen',
    scopes: {
      openid: 'Erfahren, welches Konto Ihres ist',
      profile: 'Ihren Namen und Ihr Profil sehen',
      email: 'Ihre E-Mail-Adresse sehen',
      offline_access: 'Den Zugriff behalten, während Sie nicht da sind',
    },
  },
  destination: {
    thisComputer: (host) => `ein Programm auf diesem Computer (${host})`,
    appOnDevice: (scheme) => `eine App auf diesem Gerät (${scheme})`,
  },
  error: {
    requestId: 'Nummer der Anfrage',
    goTo: (destination) => `Weiter zu ${destination}`,
    notVouched: {
      title: 'Diese Anfrage kann nicht beantwortet werden',
      message: 'Die Anwendung, von der Sie kommen, hat etwas angefragt, das wir ablehnen. Sie sind nicht angemeldet.',
      advice: 'Gehen Sie nur weiter, wenn Sie diese Adresse kennen und schon einmal dort waren:',
    },
    application: {
      title: 'Diese Anfrage kann nicht beantwortet werden',
      message: 'Die Anwendung, von der Sie kommen, ist nicht bekannt, oder ihre Anfrage ist unvollständig.',
      advice: REPORT,
    },
    redirectUri: {
      title: 'Diese Anfrage kann nicht beantwortet werden',
      message:
        'Die Anwendung wollte Sie an eine Adresse weiterleiten lassen, die nicht für sie eingetragen ist. Deshalb endet es hier.',
      advice: REPORT,
    },
    startAgain: {
      title: 'Bitte beginnen Sie noch einmal',
      message: 'Diese Seite ist zu alt, wurde schon verwendet oder gehört zu einem anderen Browser.',
      advice: 'Gehen Sie zur Anwendung zurück, und melden Sie sich von dort an. Diese Seite können Sie schließen.',
    },
    tooMany: {
      title: 'Zu viele Anfragen',
      message: 'Aus Ihrem Netz kamen in kurzer Zeit zu viele Anfragen.',
      advice: 'Warten Sie eine Minute, und versuchen Sie es dann noch einmal.',
    },
    unavailable: {
      title: 'Gerade nicht verfügbar',
      message: 'Das kann im Moment nicht abgeschlossen werden.',
      advice:
        'Warten Sie einige Sekunden, und laden Sie diese Seite neu, oder gehen Sie zur Anwendung zurück, und melden Sie sich von dort an.',
    },
    notFound: {
      title: 'Hier ist nichts',
      message: 'Keine Seite hat diese Adresse.',
      advice: 'Prüfen Sie die Adresse, oder gehen Sie zur Anwendung zurück, von der Sie kamen.',
    },
    badRequest: {
      title: 'Diese Anfrage kann nicht beantwortet werden',
      message: 'Die Anfrage hat eine Form, die wir nicht annehmen.',
      advice: 'Gehen Sie zur Anwendung zurück, und versuchen Sie es noch einmal.',
    },
    internal: {
      title: 'Etwas ist schiefgegangen',
      message: 'Der Fehler liegt bei uns, nicht bei Ihnen.',
      advice:
        'Versuchen Sie es gleich noch einmal. Geschieht es wieder, wenden Sie sich an die Administration, und nennen Sie ihr die Nummer der Anfrage.',
    },
  },
  footer: 'Autorisierung durch grantry',
};

/** Behind „Warten Sie“. */
function duration(seconds: number): string {
  if (seconds > 120) return `${Math.ceil(seconds / 60)} Minuten`;
  return seconds === 1 ? 'eine Sekunde' : `${seconds} Sekunden`;
}
