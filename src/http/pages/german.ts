// The texts of the pages in German.

import type { Texts } from './texts.ts';

const REPORT =
  'Gehen Sie zur Anwendung zurück, und versuchen Sie es noch einmal. Geschieht es wieder, wenden Sie sich an den Betreiber der Anwendung, und nennen Sie ihm die Nummer der Anfrage.';

export const GERMAN: Texts = {
  language: 'de',
  login: {
    title: 'Anmelden',
    lead: (client) => `um mit ${client} fortzufahren`,
    leadToAccount: 'um Ihr Konto zu sehen',
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
    byPassword: 'Mit Passwort anmelden',
    signInBy: (provider) => `Mit ${provider} anmelden`,
    cancelled: (provider) => `Die Anmeldung bei ${provider} wurde nicht abgeschlossen.`,
    unavailable: (provider) =>
      `${provider} ist gerade nicht erreichbar. Warten Sie etwas, und versuchen Sie es dann noch einmal.`,
    invalid: (provider) =>
      `Die Antwort von ${provider} ist nicht verwendbar. Versuchen Sie es noch einmal, oder fragen Sie die Betreiber dieses Servers.`,
    notPermitted: (username, provider) => `${username} bei ${provider} darf sich hier nicht anmelden.`,
    notForTitle: 'Dafür ist ein anderes Konto nötig',
    notForPerson: (username, provider) =>
      `${username} bei ${provider} darf diese Anwendung nicht benutzen. Melden Sie sich mit einem anderen Konto an.`,
    notForLocal: (username) =>
      `${username} darf diese Anwendung nicht benutzen. Melden Sie sich mit einem anderen Konto an.`,
    notOpen: 'Auf diesem Weg kann man sich bei dieser Anwendung nicht anmelden. Wählen Sie einen anderen.',
    noWay: 'Bei dieser Anwendung kann man sich noch nicht anmelden. Fragen Sie ihre Betreiber.',
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
    claims: { name: 'Ihr Name', address: 'Ihre E-Mail-Adresse', groups: 'Ihre Gruppen' },
    details: 'Einzelheiten',
    andMore: (count) => `und ${count} weitere`,
    onlySome:
      'Nur bestimmte Konten dürfen diese Anwendung benutzen, und sie behält den Zugriff nur, solange Ihres dazu gehört.',
    howLong: 'Wie lange',
    lasts: { sign_out: 'Bis Sie sich abmelden', revocation: 'Bis der Zugriff widerrufen wird' },
    lastsDetail: {
      sign_out: 'Die Anwendung behält ihn, ohne noch einmal zu fragen, solange Sie hier angemeldet sind.',
      revocation: 'Die Anwendung behält ihn, ohne noch einmal zu fragen, auch während Sie abgemeldet sind.',
    },
    revokeThere: 'Zugriffe ansehen und widerrufen',
    allow: 'Erlauben',
    deny: 'Ablehnen',
    website: 'Website',
    privacy: 'Datenschutzerklärung',
    terms: 'Nutzungsbedingungen',
    scopes: {
      openid: 'Erfahren, welches Konto Ihres ist',
      profile: 'Ihren Namen und Ihr Profil sehen',
      email: 'Ihre E-Mail-Adresse sehen',
      groups: 'Sehen, in welchen Gruppen Sie sind',
      offline_access: 'Den Zugriff behalten, während Sie nicht da sind',
    },
  },
  logout: {
    question: 'Abmelden?',
    signedInAs: (username) => `Sie sind als ${username} angemeldet.`,
    submit: 'Abmelden',
    done: 'Sie sind abgemeldet',
    doneAdvice: 'Sie können dieses Fenster schließen.',
    signInAgain: 'Wieder anmelden',
  },
  account: {
    titles: {
      overview: 'Ihr Konto',
      sessions: 'Wo Sie angemeldet sind',
      applications: 'Anwendungen mit Zugriff',
    },
    tabs: { overview: 'Konto', sessions: 'Sitzungen', applications: 'Anwendungen' },
    pages: 'Seiten Ihres Kontos',
    questions: { everywhere: 'Überall abmelden?', session: 'Diese Sitzung beenden?', revoke: 'Zugriff widerrufen?' },
    cancel: 'Abbrechen',
    email: 'E-Mail-Adresse',
    signOut: 'Abmelden',
    signOutDetail:
      'Meldet diesen Browser ab und beendet, was Anwendungen für diese Sitzung haben. Zugriff, der länger gilt, bleibt und steht unter Anwendungen.',
    signOutHere: 'Hier abmelden',
    signOutEverywhere: 'Überall abmelden',
    everywhereDetail:
      'Meldet Sie in jedem Browser ab und beendet, was Anwendungen für Sie tun dürfen, bis Sie sich dort wieder anmelden. Nützlich, wenn Ihnen ein Gerät abhandengekommen ist.',
    thisBrowser: 'Dieser Browser',
    otherBrowser: 'Anderer Browser',
    address: 'Adresse',
    signedInAt: 'Angemeldet',
    signedInBy: 'Angemeldet mit',
    passwordHere: 'Ihrem Passwort hier',
    newestSessions: (count) => `Es gibt noch mehr. Das sind die ${count} neuesten.`,
    noApplications: 'Keine Anwendung hat Zugriff auf Ihr Konto.',
    unknownApplication: 'Eine Anwendung, die außer Betrieb ist',
    unknownDetail: 'Kommt sie zurück, kann sie ihren Zugriff wiederhaben, es sei denn, Sie widerrufen ihn.',
    letInByDefault: 'Ihre Organisation lässt sie zu, ohne Sie zu fragen.',
    mayDo: 'Erlaubt haben Sie',
    firstUsed: 'Zuerst genutzt',
    lastUsed: 'Zuletzt genutzt',
    neverUsed: 'Noch nicht genutzt',
    revoke: 'Zugriff widerrufen',
    revokeDetail:
      'Widerrufen Sie den Zugriff, bekommt die Anwendung nichts mehr. Nutzen Sie sie wieder, melden Sie sich an und werden neu gefragt. Was sie schon bekommen hat, kann sie behalten, und auf ihrer eigenen Seite können Sie angemeldet bleiben.',
    livesOn: (seconds) =>
      `Dienste, die ihre Zugriffstoken selbst prüfen, nehmen sie danach unter Umständen noch an: höchstens ${duration(seconds)} lang.`,
    revoked: (client) => `${client} hat keinen Zugriff mehr.`,
    pageOf: (page, pages) => `Seite ${page} von ${pages}`,
    next: 'Nächste Seite',
    previous: 'Vorige Seite',
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
    account: {
      title: 'Bitte beginnen Sie noch einmal',
      message:
        'Es hat sich nichts geändert. Die Seite, die Sie verwendet haben, ist zu alt oder gehört zu einem anderen Browser.',
      advice: 'Öffnen Sie die Seite Ihres Kontos neu, und versuchen Sie es noch einmal.',
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

/** Behind „Warten Sie“ and „höchstens“. */
function duration(seconds: number): string {
  if (seconds > 2 * 3600) return `${Math.ceil(seconds / 3600)} Stunden`;
  if (seconds > 120) return `${Math.ceil(seconds / 60)} Minuten`;
  return seconds === 1 ? 'eine Sekunde' : `${seconds} Sekunden`;
}
