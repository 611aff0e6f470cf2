// People of the shared install, and the application that they sign in to.

import { hashPassword } from '../../../src/login/local/local-users.ts';
import { answerIn } from '../../clients/person.ts';
import { PKCE } from '../../grantry.ts';
import { TestBrowser } from '../../http/sign-in/sign-in-browser.ts';
import { apply, createNamespace, find, OURS, secretValue, waitReady } from './kubectl.ts';
import { ISSUER, sharedInstall } from './shared-install.ts';
import { oauthClient, postForm } from './tenants.ts';

export const PERSON = { username: 'demo', password: 'correct horse battery' } as const;

/** An application with a server, whose people come back to a port of this machine. */
export interface WebApplication {
  readonly clientId: string;
  readonly secret: string;
  readonly redirectUri: string;
}

/** What an application has of a person. */
export interface Grant {
  readonly accessToken: string;
  readonly refreshToken: string;
}

/** Gives the shared install a Secret with people, as its values name one. */
export async function letPeopleSignIn(): Promise<void> {
  const { namespace } = sharedInstall;
  const [name, key] = ['people', 'users.yaml'];
  if ((await find('secret', name, namespace)) === undefined) {
    const users = [{ username: PERSON.username, passwordHash: await hashPassword(PERSON.password) }];
    await apply({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace, name },
      stringData: { [key]: JSON.stringify(users) },
    });
  }
  await sharedInstall.upgrade({ users: { existingSecret: name, key } });
}

/** An application in a namespace of its own, with the policy that lets its people come back to loopback. */
export async function createWebApplication(namespace: string, redirectUri: string): Promise<WebApplication> {
  await createNamespace(namespace);
  const [label = '', value] = OURS.split('=');
  await apply(
    {
      apiVersion: 'grantry.dev/v1alpha1',
      kind: 'ClientPolicy',
      metadata: { name: namespace, labels: { [label]: value ?? '' } },
      spec: {
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
        allow: { loopbackRedirects: true },
      },
    },
    oauthClient(namespace, 'web', {
      grantTypes: ['authorization_code', 'refresh_token'],
      redirectUris: [redirectUri],
      scopes: [`${namespace}/photos`],
      defaultScopes: [`${namespace}/photos`],
    }),
  );
  await waitReady(namespace, 'oauthclient/web');
  const secret = await secretValue(namespace, 'web-oauth', 'client-secret');
  return { clientId: `${namespace}.web`, secret, redirectUri };
}

/** Where a person is sent to sign in to it. */
export function authorizationUrl({ clientId, redirectUri }: WebApplication): URL {
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    state: 'some-state',
    code_challenge: PKCE.challenge,
    code_challenge_method: 'S256',
  });
  return new URL(`${ISSUER}/authorize?${query}`);
}

/** Redeems the code that a person came back with. @param url where grantry is reached */
export async function redeem(url: string, application: WebApplication, cameBack: URL): Promise<Grant> {
  const form = {
    grant_type: 'authorization_code',
    code: cameBack.searchParams.get('code') ?? '',
    redirect_uri: application.redirectUri,
    code_verifier: PKCE.verifier,
  };
  const { status, body } = await postForm(`${url}/token`, form, credentials(application));
  if (status !== 200) throw new Error(`the code was not redeemed: ${status} ${JSON.stringify(body)}`);
  return { accessToken: String(body.access_token), refreshToken: String(body.refresh_token) };
}

/** Uses a refresh token; status, and what came of it. */
export async function refresh(
  url: string,
  application: WebApplication,
  refreshToken: string,
): Promise<{ readonly status: number; readonly grant: Grant }> {
  const form = { grant_type: 'refresh_token', refresh_token: refreshToken };
  const { status, body } = await postForm(`${url}/token`, form, credentials(application));
  return { status, grant: { accessToken: String(body.access_token), refreshToken: String(body.refresh_token) } };
}

/** A person signs in without a real browser. */
export async function signIn(url: string, application: WebApplication): Promise<Grant> {
  const browser = new TestBrowser(url, ISSUER);
  const cameBack = await answerIn(browser, authorizationUrl(application), { ...PERSON, decision: 'allow' });
  return await redeem(url, application, cameBack);
}

function credentials({ clientId, secret }: WebApplication): readonly [string, string] {
  return [clientId, secret];
}
