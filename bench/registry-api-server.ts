// What an API server answers to a token server, without one: lists of so many OAuthClients and their verifier Secrets, and
// of so many ProtectedResources, page by page, and watches that stay silent until a line on standard input sends one changed
// client, or resource if the line is `resource`. Prints its address.

import { randomUUID } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import {
  VERIFIER_SECRET_TYPE,
  verifierSecretData,
  verifierSecretName,
} from '../src/admission/client-secrets/client-verifier.ts';
import { PART_LABEL } from '../src/admission/references/secret-parts.ts';
import { secretVerifier } from '../src/oauth/registry/client-secret.ts';

const CLIENTS = Number(process.argv[2]);
const RESOURCES = Number(process.argv[3] ?? 0);
/** Below the limit of the built-in policy. */
const PER_NAMESPACE = 200;
const CREATED = '2026-01-01T00:00:00Z';

const uids = Array.from({ length: CLIENTS }, () => randomUUID());
const NAMESPACES = Math.ceil(CLIENTS / PER_NAMESPACE);
const namespaceOf = (index: number) => `team-${Math.floor(index / PER_NAMESPACE)}`;

function metadata(index: number, name: string, namespace?: string) {
  const managedFields = [{ manager: 'kubectl', operation: 'Apply', fieldsV1: { 'f:spec': { 'f:scopes': {} } } }];
  return { name, namespace, resourceVersion: String(index + 1), creationTimestamp: CREATED, managedFields };
}

/** As a team writes one, with what the controller says of it. */
function client(index: number, generation = 1) {
  const namespace = namespaceOf(index);
  const condition = (type: string) => ({
    type,
    status: 'True',
    reason: type,
    message: 'The generated secret is in place.',
    lastTransitionTime: CREATED,
    observedGeneration: 1,
  });
  return {
    metadata: { ...metadata(index, `app-${index}`, namespace), uid: uids[index], generation },
    spec: {
      className: 'default',
      displayName: `App ${index} of generation ${generation}`,
      grantTypes: ['authorization_code', 'refresh_token', 'client_credentials'],
      redirectUris: [`https://app-${index}.example.com/callback`],
      scopes: ['openid', `${namespace}/read`, `${namespace}/write`],
      defaultScopes: ['openid'],
      audiences: [`urn:grantry:ns:${namespace}:api`],
      auth: { method: 'client_secret_basic' },
      tokens: { accessTokenLifetime: '10m' },
    },
    status: { conditions: ['Accepted', 'ResolvedRefs', 'CredentialsReady', 'Programmed', 'Ready'].map(condition) },
  };
}

/** As a team declares one: texts in two languages, and entries for a namespace, for labels, and for one client. */
function resource(index: number, generation = 1) {
  const namespace = `team-${Math.floor((index * NAMESPACES) / RESOURCES)}`;
  const scope = (name: string) => ({
    name: `${namespace}/api-${index}.${name}`,
    description: `Use ${name} of API ${index}`,
    descriptions: { de: `${name} der API ${index}` },
  });
  return {
    metadata: { ...metadata(index, `api-${index}`, namespace), uid: `resource-${index}`, generation },
    spec: {
      displayName: `API ${index} of generation ${generation}`,
      displayNames: { de: `API ${index}` },
      scopes: ['read', 'write', 'admin'].map(scope),
      allowedClients: [
        { namespaces: [`team-${index % 100}`], scopes: [`${namespace}/api-${index}.read`] },
        { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': `team-${(index % 100) + 1}` } } },
        { namespaces: ['*'], clients: [`app-${index}`] },
      ],
      tokens: { maxLifetime: '5m' },
    },
  };
}

function verifierSecret(index: number) {
  const uid = uids[index] ?? '';
  const labels = { [PART_LABEL]: 'verifier' };
  return {
    metadata: { ...metadata(index, verifierSecretName(uid), 'grantry'), uid: randomUUID(), labels },
    type: VERIFIER_SECRET_TYPE,
    data: verifierSecretData({
      revision: 1,
      verifiers: [{ verifier: secretVerifier(uid, `secret-${index}`), revision: 1 }],
    }),
  };
}

function namespace(index: number) {
  const name = `team-${index}`;
  return {
    metadata: { ...metadata(index, name), uid: `ns-${index}`, labels: { 'kubernetes.io/metadata.name': name } },
  };
}

/** How many there are of a kind, and each of them. */
const KINDS: Readonly<Record<string, { readonly count: number; readonly make: (index: number) => object }>> = {
  oauthclients: { count: CLIENTS, make: client },
  protectedresources: { count: RESOURCES, make: resource },
  secrets: { count: CLIENTS, make: verifierSecret },
  namespaces: { count: NAMESPACES, make: namespace },
};

const watches = new Map<string, ServerResponse>();

const server = createServer((request, response) => {
  const url = new URL(request.url ?? '', 'http://localhost');
  const kind = url.pathname.split('/').at(-1) ?? '';
  // Of Secrets of one type there are none: the verifiers are selected by their label.
  const isOfOneType = url.searchParams.has('fieldSelector');
  response.setHeader('content-type', 'application/json');
  if (url.searchParams.get('watch') !== null) {
    response.flushHeaders();
    if (!isOfOneType) watches.set(kind, response);
    return;
  }
  const { count, make } = (isOfOneType ? undefined : KINDS[kind]) ?? { count: 0, make: () => ({}) };
  const begin = Number(url.searchParams.get('continue') ?? 0);
  const end = Math.min(count, begin + Number(url.searchParams.get('limit') ?? count));
  const items = Array.from({ length: end - begin }, (_, index) => make(begin + index));
  const next = end < count ? String(end) : '';
  response.end(JSON.stringify({ items, metadata: { resourceVersion: '1', continue: next } }));
});
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
});

let generation = 1;
createInterface({ input: process.stdin }).on('line', (line) => {
  generation += 1;
  const isResource = line === 'resource';
  const object = isResource ? resource(0, generation) : client(Math.floor(CLIENTS / 2), generation);
  const changed = { ...object, metadata: { ...object.metadata, resourceVersion: String(CLIENTS + generation) } };
  const [kind, plural] = isResource ? ['ProtectedResource', 'protectedresources'] : ['OAuthClient', 'oauthclients'];
  const typed = { apiVersion: 'grantry.dev/v1alpha1', kind, ...changed };
  watches.get(plural)?.write(`${JSON.stringify({ type: 'MODIFIED', object: typed })}\n`);
});
