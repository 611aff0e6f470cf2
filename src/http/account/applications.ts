// GET and POST /account/applications: the clients that the person has let in or that have got codes or tokens for
// the person, and the revocation of one. The watermark comes first: it ends all grants and tokens of the client, on every replica.

import type { ClientUse, Consent } from '../../oauth/ports/login-stores.ts';
import type { Client } from '../../oauth/registry/client.ts';
import type { Registry } from '../../oauth/registry/registry.ts';
import type { Resource } from '../../oauth/registry/resource.ts';
import type { ShownGrant } from '../pages/consent-page.ts';
import { type PageLanguage, textIn } from '../pages/page-language.ts';
import {
  ACCOUNT_PAGE,
  type AccountFlow,
  type AccountPage,
  formFields,
  formRefused,
  leadTo,
  type Visit,
} from './account-flow.ts';
import { applicationsPage, revokePage, type ShownApplication } from './applications-page.ts';

const PATH = '/account/applications';

/** Applications on one page. */
const PER_PAGE = 20;

/** The page. */
export function applications(flow: AccountFlow): AccountPage {
  return {
    route: 'account_applications',
    path: PATH,
    show: (visit) => show(flow, visit),
    actions: {
      revoke: {
        ask: (visit, clientUid) => askRevocation(flow, visit, clientUid),
        act: (visit, clientUid) => revoke(flow, visit, clientUid),
      },
    },
  };
}

/** A client with access. */
interface Application {
  readonly clientUid: string;
  readonly access: Consent | undefined;
  readonly use: ClientUse | undefined;
}

async function show(flow: AccountFlow, visit: Visit): Promise<string> {
  const { signedIn, frame, exchange } = visit;
  const asked = pageNumber(exchange.parameters.get('page'));
  const all = await applicationsOf(flow, signedIn.session.subject);
  const pages = Math.max(1, Math.ceil(all.length / PER_PAGE));
  const page = Math.min(asked, pages);
  const shown = all.slice((page - 1) * PER_PAGE, page * PER_PAGE);
  return applicationsPage({
    frame,
    path: PATH,
    applications: shown.map((application) => shownApplication(flow, application, frame.language)),
    page,
    pages,
    revoked: revokedClient(exchange.parameters.get('revoked'), flow.registry.current, all),
  });
}

async function askRevocation(flow: AccountFlow, visit: Visit, clientUid: string): Promise<string | undefined> {
  const { signedIn, frame } = visit;
  const all = await applicationsOf(flow, signedIn.session.subject);
  const application = all.find((each) => each.clientUid === clientUid);
  if (application === undefined) return undefined;
  return revokePage({
    frame,
    path: PATH,
    application: shownApplication(flow, application, frame.language),
    fields: formFields(flow, signedIn, { action: 'revoke', subject: clientUid }),
  });
}

/** The most recently used first; those out of use last, in an order that a reload keeps. */
async function applicationsOf(
  { consents, uses }: Pick<AccountFlow, 'consents' | 'uses'>,
  subject: string,
): Promise<readonly Application[]> {
  const [given, used] = await Promise.all([consents.list(subject), uses.list(subject)]);
  const accessAt = new Map(given.map(({ clientUid, access }) => [clientUid, access]));
  const useOf = new Map(used.map((use) => [use.clientUid, use]));
  const all = [...new Set([...accessAt.keys(), ...useOf.keys()])].map((clientUid) => {
    return { clientUid, access: accessAt.get(clientUid), use: useOf.get(clientUid) };
  });
  const lastUsed = ({ use }: Application) => use?.lastUsed ?? 0;
  return all.sort((one, other) => lastUsed(other) - lastUsed(one) || (one.clientUid < other.clientUid ? -1 : 1));
}

function shownApplication(
  flow: AccountFlow,
  { clientUid, access = new Map(), use }: Application,
  language: PageLanguage,
): ShownApplication {
  const client = flow.registry.current.findByUid(clientUid);
  return {
    client: client && shownClient(client),
    isLetIn: client?.consent === 'Skip',
    access: shownAccess(flow, access, language),
    firstUsed: use?.firstUsed,
    lastUsed: use?.lastUsed,
    clientUid,
  };
}

function shownClient({ displayName, clientId, tokens }: Client): ShownApplication['client'] {
  const { accessTokenFormat, accessTokenLifetimeSeconds } = tokens;
  return { name: displayName, clientId, livesOnSeconds: accessTokenFormat === 'jwt' ? accessTokenLifetimeSeconds : 0 };
}

/** One entry for each resource with an owner, and one for all others with the same scopes; what is about the person first. */
function shownAccess(
  { registry, issuer }: AccountFlow,
  access: Consent,
  language: PageLanguage,
): readonly ShownGrant[] {
  const { resources } = registry.current;
  const groups = Map.groupBy(access.keys(), (audience) => {
    const owner = resources.ownerOf(audience);
    return JSON.stringify([owner?.identifier, access.get(audience)]);
  });
  const grants = [...groups.values()].map((audiences) => {
    const owner = resources.ownerOf(audiences[0] ?? '');
    const scopes = access.get(audiences[0] ?? '') ?? [];
    return {
      // The issuer is no place of its own: its scopes are about the person.
      resources: audiences
        .filter((identifier) => identifier !== issuer)
        .map((identifier) => ({ identifier, name: owner && textIn(language, owner.displayName) })),
      scopes: scopes.map((name) => ({ name, description: descriptionOf(name, owner, language) })),
    };
  });
  return grants.toSorted((one, other) => Math.min(one.resources.length, 1) - Math.min(other.resources.length, 1));
}

function descriptionOf(name: string, owner: Resource | undefined, language: PageLanguage): string | undefined {
  const declared = owner?.scopes.find((scope) => scope.name === name);
  return declared && textIn(language, declared.description);
}

function pageNumber(text: string | undefined): number {
  if (text === undefined) return 1;
  if (!/^[1-9]\d{0,4}$/.test(text)) throw formRefused('account_page_invalid');
  return Number(text);
}

/** The name to say of that it has no access. Said only where that is so: any link can name a client. */
function revokedClient(
  clientUid: string | undefined,
  registry: Registry,
  all: readonly Application[],
): string | undefined {
  if (clientUid === undefined || all.some((application) => application.clientUid === clientUid)) return undefined;
  return registry.findByUid(clientUid)?.displayName;
}

/** Nothing is said to be done before all of it is; each step may be repeated. */
async function revoke(flow: AccountFlow, { exchange, signedIn }: Visit, clientUid: string): Promise<void> {
  const { subject } = signedIn.session;
  const client = flow.registry.current.findByUid(clientUid);
  if (client !== undefined) exchange.log.clientId = client.clientId;
  await flow.watermarks.raise({ kind: 'consent', clientUid, subject });
  await flow.consents.withdraw(subject, clientUid);
  await flow.uses.forget(subject, clientUid);
  flow.audit.record({ type: 'consent.withdrawn', subject, clientId: client?.clientId, reason: ACCOUNT_PAGE });
  leadTo(flow, exchange, `${PATH}?${new URLSearchParams({ revoked: clientUid })}`, 'consent_withdrawn');
}
