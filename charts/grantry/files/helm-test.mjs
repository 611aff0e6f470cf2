// What `helm test` runs, with the image of grantry: is everything reachable, is every replica well, and does a client that
// is made now get a token. It ends with the first sentence of what is wrong.

import { lookup } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const { ISSUER, SERVICE, ADMIN_HOST, ADMIN_PORT, CLIENT_NAMESPACE, CLIENT_NAME } = process.env;
const path = new URL(ISSUER).pathname.replace(/\/$/, '');
const service = `http://${SERVICE}`;

/** The answer, with its text. What is not answered is said with the address. */
async function ask(url, options) {
  try {
    const response = await fetch(url, { ...options, signal: AbortSignal.timeout(5000) });
    return { status: response.status, text: await response.text() };
  } catch (error) {
    throw new Error(`${url} does not answer: ${error.cause?.message ?? error.message}`);
  }
}

async function json(url, options) {
  const { status, text } = await ask(url, options);
  if (status !== 200) throw new Error(`${url} answers ${status}: ${text}`);
  return JSON.parse(text);
}

/** Tried again until it no longer throws, for a minute. */
async function eventually(attempt) {
  for (const end = Date.now() + 60_000; ; await sleep(1000)) {
    try {
      return await attempt();
    } catch (error) {
      if (Date.now() > end) throw error;
    }
  }
}

async function discovery() {
  const metadata = await json(`${service}/.well-known/oauth-authorization-server${path}`);
  if (metadata.issuer !== ISSUER) throw new Error(`the metadata is of ${metadata.issuer} and not of ${ISSUER}`);
  const { keys } = await json(`${service}${new URL(metadata.jwks_uri).pathname}`);
  if (keys.length === 0) throw new Error(`${metadata.jwks_uri} has no key`);
  return metadata;
}

/** Every line of every replica: one that is no reason to be unready, such as Redis, counts as well. */
async function replicasAreWell() {
  const replicas = await lookup(ADMIN_HOST, { all: true }).catch(() => []);
  if (replicas.length === 0) throw new Error(`no token server is ready: ${ADMIN_HOST} has no address`);
  for (const { address, family } of replicas) {
    const host = family === 6 ? `[${address}]` : address;
    const { text } = await ask(`http://${host}:${ADMIN_PORT}/readyz`);
    const wrong = text.split('\n').filter((line) => line !== '' && !line.endsWith(': ok'));
    if (wrong.length > 0) throw new Error(`the token server ${address} says: ${wrong.join('; ')}`);
  }
}

const account = '/var/run/secrets/kubernetes.io/serviceaccount';

async function object(api, kind, name) {
  const authorization = `Bearer ${readFileSync(`${account}/token`, 'utf8')}`;
  const url = `https://kubernetes.default.svc/${api}/namespaces/${CLIENT_NAMESPACE}/${kind}/${name}`;
  return await json(url, { headers: { authorization } });
}

/** The credentials of the client of this test, as the controller wrote them. */
async function credentials() {
  await eventually(async () => {
    const { status } = await object('apis/grantry.dev/v1alpha1', 'oauthclients', CLIENT_NAME);
    const ready = status?.conditions?.find(({ type }) => type === 'Ready');
    if (ready?.status !== 'True') {
      throw new Error(
        `OAuthClient ${CLIENT_NAMESPACE}/${CLIENT_NAME} is not ready: ${ready?.message ?? 'no controller has seen it'}`,
      );
    }
  });
  const { data } = await object('api/v1', 'secrets', `${CLIENT_NAME}-oauth`);
  return ['client-id', 'client-secret'].map((key) => Buffer.from(data[key], 'base64').toString());
}

async function tokenRoundTrip(metadata, [id, secret]) {
  const post = (endpoint, form) =>
    json(`${service}${new URL(endpoint).pathname}`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`)}` },
      body: new URLSearchParams(form),
    });
  const { access_token: token } = await post(metadata.token_endpoint, { grant_type: 'client_credentials' });
  const { active } = await post(metadata.introspection_endpoint, { token });
  if (active !== true) throw new Error('the token that was issued is not active');
}

try {
  const metadata = await eventually(discovery);
  await eventually(replicasAreWell);
  await tokenRoundTrip(metadata, await credentials());
  console.log(`${ISSUER}: all replicas are well, and a new client got a token`);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
