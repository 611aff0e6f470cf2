// The same for a person of an identity provider, which runs in this process; what it computes is of the test, and does not count.

import { answerOf, hidden, type TestBrowser } from '../../http/sign-in/sign-in-browser.ts';
import { anOidcProvider } from '../../login/upstream/providers.ts';
import { ScriptedProvider } from '../../login/upstream/scripted-provider.ts';
import { FULL_CLIENTS, NOTES, PROVIDER } from './clients.ts';
import { usernameOf } from './people.ts';
import { agreed, atLogin, authorizePath, expecting, goingOn, type Visit, type VisitOf, type Wish } from './visits.ts';
import { CostWorld } from './world.ts';

/** A world whose people come from a provider. */
export class ProviderWorld {
  readonly world: CostWorld;
  /** One who signs in again and again. */
  readonly person = usernameOf(0);
  readonly #provider: ScriptedProvider;
  /** By client id: of a person who is signed in, and has agreed. */
  readonly #browsers = new Map<string, TestBrowser>();

  private constructor(world: CostWorld, provider: ScriptedProvider) {
    this.world = world;
    this.#provider = provider;
  }

  static async open(): Promise<ProviderWorld> {
    const provider = await ScriptedProvider.start();
    const providers = [anOidcProvider({ name: PROVIDER, issuer: provider.issuer })];
    const world = await CostWorld.open({ clients: FULL_CLIENTS, resources: [NOTES], providers });
    return new ProviderWorld(world, provider);
  }

  async close(): Promise<void> {
    await this.world.close();
    this.#provider.stop();
  }

  /** A code for a person who has agreed before, and is still signed in. */
  async code(wish: Omit<Wish, 'username'>): Promise<string> {
    const { clientId } = wish.caller;
    const browser = this.#browsers.get(clientId) ?? (await this.agreed(wish));
    this.#browsers.set(clientId, browser);
    return answerOf(await browser.get(authorizePath(wish))).code ?? '';
  }

  /** The browser of a new person who signs in and agrees. */
  async agreed(wish: Omit<Wish, 'username'>): Promise<TestBrowser> {
    return await agreed(await this.atConsent({ ...wish, username: this.world.newPerson() }));
  }

  /** The person is about to come back from the provider. @returns the step that does */
  async returning(wish: Wish): Promise<Visit & { readonly comeBack: () => Promise<Visit['page']> }> {
    const { browser, page } = await atLogin(this.world, wish);
    const leaving = page.location === undefined ? await this.#choose({ browser, page }) : page;
    const sent = new URL(leaving.location ?? '').searchParams;
    const { username } = wish;
    this.#provider.nonce = sent.get('nonce') ?? '';
    this.#provider.claims = {
      sub: username,
      preferred_username: username,
      name: 'A Person',
      email: 'person@example.com',
      email_verified: true,
      groups: ['admins', 'editors'],
    };
    this.#provider.userinfo = { sub: username };
    const path = `/login/callback/${PROVIDER}?${new URLSearchParams({ state: sent.get('state') ?? '', code: 'a-code' })}`;
    return { browser, page: leaving, comeBack: expecting(302, () => browser.get(path)) };
  }

  /** The page of consent, just signed in. */
  async atConsent(wish: Wish): Promise<VisitOf> {
    const { browser, comeBack } = await this.returning(wish);
    return await goingOn(browser, await comeBack());
  }

  #choose({ browser, page }: Visit): Promise<Visit['page']> {
    const fields = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
    return browser.post(`/login/upstream/${PROVIDER}`, fields);
  }
}
