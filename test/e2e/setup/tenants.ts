// Namespaces of teams, and their clients.

import { apply, createNamespace, type KubernetesObject, secretValue, waitReady } from './kubectl.ts';

/** A machine client whose Secret has the usual names. */
export interface MachineClient {
  readonly namespace: string;
  readonly name: string;
  readonly clientId: string;
  readonly secretName: string;
}

/** An OAuthClient as a manifest has it. */
export function oauthClient(namespace: string, name: string, spec: object): KubernetesObject {
  return { apiVersion: 'grantry.dev/v1alpha1', kind: 'OAuthClient', metadata: { namespace, name }, spec };
}

/** What a client says that gets tokens by its secret alone. */
export function machineSpec(namespace: string): object {
  const scopes = [`${namespace}/read`];
  return { grantTypes: ['client_credentials'], scopes, defaultScopes: scopes };
}

/** Makes a namespace with a client in it, and waits until it is Ready. */
export async function createMachineClient(namespace: string, more: object = {}): Promise<MachineClient> {
  await createNamespace(namespace);
  await apply(oauthClient(namespace, 'worker', { ...machineSpec(namespace), ...more }));
  await waitReady(namespace, 'oauthclient/worker');
  return { namespace, name: 'worker', clientId: `${namespace}.worker`, secretName: 'worker-oauth' };
}

/** A token request with the secret that the client's Secret has just now, or with another one. */
export async function requestToken(
  url: string,
  { namespace, secretName, clientId }: MachineClient,
  secret?: string,
): Promise<{ readonly status: number; readonly token: string }> {
  const password = secret ?? (await secretValue(namespace, secretName, 'client-secret'));
  const { status, body } = await postForm(`${url}/token`, { grant_type: 'client_credentials' }, [clientId, password]);
  return { status, token: String(body.access_token) };
}

/** POSTs a form with client_secret_basic; status and JSON of the answer. */
export async function postForm(
  url: string,
  form: Readonly<Record<string, string>>,
  [clientId, secret]: readonly [string, string],
): Promise<{ readonly status: number; readonly body: Readonly<Record<string, unknown>> }> {
  const authorization = `Basic ${Buffer.from(`${clientId}:${secret}`).toString('base64')}`;
  const response = await fetch(url, { method: 'POST', headers: { authorization }, body: new URLSearchParams(form) });
  const text = await response.text();
  return { status: response.status, body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>) };
}
