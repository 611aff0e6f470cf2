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
    usernameMissing: 'Geben Sie Ihren Benutzernamen ein.',
    passwordMissing: 'Geben Sie Ihr Passwort ein.',
    byPassword: 'Mit Passwort anmelden',
    signInBy: (provider) => `Mit ${provider} anmelden`,
    problems: {
      missing: 'Ihr Benutzername oder Ihr Passwort fehlt',
      wrong: {
        title: () => 'Der Benutzername oder das Passwort ist nicht richtig',
        advice: 'Prüfen Sie beides, und versuchen Sie es noch einmal.',
      },
      tooMany: {
        title: 'Es gab zu viele Versuche',
        advice: (seconds) => `Warten Sie ${duration(seconds)}, und versuchen Sie es dann noch einmal.`,
      },
      busy: {
        title: () => 'Gerade melden sich zu viele Menschen an',
        advice: 'Warten Sie einige Sekunden, und versuchen Sie es dann noch einmal.',
      },
      outdated: {
        title: () => 'Die Anmeldung kann gerade nicht abgeschlossen werden',
        advice: 'Warten Sie einige Sekunden, und versuchen Sie es dann noch einmal.',
      },
      cancelled: {
        title: (provider) => `Die Anmeldung bei ${provider} wurde nicht abgeschlossen`,
        advice: 'Versuchen Sie es noch einmal, und schließen Sie sie dort ab.',
      },
      unavailable: {
        title: (provider) => `${provider} ist gerade nicht erreichbar`,
        advice: 'Warten Sie etwas, und versuchen Sie es dann noch einmal.',
      },
      invalid: {
        title: (provider) => `Die Antwort von ${provider} ist nicht verwendbar`,
        advice: 'Versuchen Sie es noch einmal. Geschieht es wieder, fragen Sie die Betreiber dieses Servers.',
      },
      notPermitted: {
        title: (username, provider) => `${username} bei ${provider} darf sich hier nicht anmelden`,
        advice: 'Melden Sie sich mit einem anderen Konto an, oder fragen Sie die Betreiber dieses Servers.',
      },
      notForPerson: {
        title: (username, provider) => `${username} bei ${provider} darf diese Anwendung nicht benutzen`,
        advice: 'Melden Sie sich mit einem anderen Konto an.',
      },
      notForLocal: {
        title: (username) => `${username} darf diese Anwendung nicht benutzen`,
        advice: 'Melden Sie sich mit einem anderen Konto an.',
      },
      notOpen: {
        title: () => 'Auf diesem Weg kann man sich bei dieser Anwendung nicht anmelden',
        advice: 'Wählen Sie einen anderen.',
      },
    },
    noWay: 'Bei dieser Anwendung kann man sich noch nicht anmelden. Fragen Sie ihre Betreiber.',
    closedForNow:
      'Die Stelle, bei der Sie sich anmelden, ist gerade nicht erreichbar. Warten Sie etwas, und laden Sie diese Seite neu.',
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
    password: 'Passwort',
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
    notAsserted: {
      title: 'Die Anfrage der Anwendung wurde abgelehnt',
      message:
        'Die Anwendung, von der Sie kommen, hat etwas angefragt, das sie nicht bekommt. Sie sind nicht angemeldet.',
      advice: 'Gehen Sie nur weiter, wenn Sie diese Adresse kennen und schon einmal dort waren:',
    },
    client: {
      title: 'Diese Anwendung kann hier nicht verwendet werden',
      message:
        'Die Anwendung, von der Sie kommen, ist bei diesem Server nicht eingetragen oder wurde von ihm abgelehnt.',
      advice: REPORT,
    },
    application: {
      title: 'Die Anfrage der Anwendung ist nicht gültig',
      message: 'In der Anfrage der Anwendung, von der Sie kommen, fehlt etwas oder ist etwas falsch.',
      advice: REPORT,
    },
    redirectUri: {
      title: 'Die Adresse für den Rückweg ist nicht eingetragen',
      message:
        'Die Anwendung wollte Sie an eine Adresse weiterleiten lassen, die nicht für sie eingetragen ist. Deshalb endet es hier.',
      advice: REPORT,
    },
    startAgain: {
      title: 'Diese Seite kann nicht mehr verwendet werden',
      message: 'Sie ist zu alt, wurde schon verwendet oder gehört zu einem anderen Browser.',
      advice: 'Gehen Sie zur Anwendung zurück, und melden Sie sich von dort an. Diese Seite können Sie schließen.',
    },
    account: {
      title: 'Es hat sich nichts geändert',
      message: 'Die Seite, die Sie verwendet haben, ist zu alt oder gehört zu einem anderen Browser.',
      advice: 'Öffnen Sie die Seite Ihres Kontos neu, und versuchen Sie es noch einmal.',
    },
    tooMany: {
      title: 'Es gab zu viele Anfragen',
      message: 'Aus Ihrem Netz kamen in kurzer Zeit zu viele Anfragen.',
      advice: 'Warten Sie eine Minute, und versuchen Sie es dann noch einmal.',
    },
    unavailable: {
      title: 'Der Server kann das gerade nicht abschließen',
      message: 'Etwas, das er dafür braucht, ist nicht erreichbar.',
      advice:
        'Warten Sie einige Sekunden, und laden Sie diese Seite neu, oder gehen Sie zur Anwendung zurück, und melden Sie sich von dort an.',
    },
    notFound: {
      title: 'Unter dieser Adresse gibt es keine Seite',
      message: 'Die Adresse ist vertippt, oder der Link, dem Sie gefolgt sind, ist falsch.',
      advice: 'Prüfen Sie die Adresse, oder gehen Sie zur Anwendung zurück, von der Sie kamen.',
    },
    badRequest: {
      title: 'Die Anfrage hat eine Form, die wir nicht annehmen',
      message: 'Ihr Browser oder die Anwendung, von der Sie kommen, hat etwas gesendet, das wir nicht lesen können.',
      advice: 'Gehen Sie zur Anwendung zurück, und versuchen Sie es noch einmal.',
    },
    internal: {
      title: 'Auf dem Server ist ein Fehler aufgetreten',
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
