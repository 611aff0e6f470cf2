// openid-client 6 and oauth4webapi 3, unmodified, over mutual TLS: they find the aliases of the endpoints by discovery and show
// their certificate through the fetch that they are given.

import { decodeJwt } from 'jose';
import * as strict from 'oauth4webapi';
import * as library from 'openid-client';
import { Agent, fetch as fetchOfUndici } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { MadeCertificate } from '../client-certificates.ts';
import { DEFAULT_AUDIENCE } from '../grantry.ts';
import { byKey, type MutualTlsGrantry, MutualTlsWorld } from '../http/mtls/mutual-tls-grantry.ts';

const world = new MutualTlsWorld();
const job = world.maker.client(world.authority, { extensions: ['subjectAltName=DNS:job.team.svc'] });
const own = world.maker.make({ subject: '/CN=own' });
const agents: Agent[] = [];

const BY_NAME = { clientId: 'team.by-name', certificate: job };
const BY_KEY = { clientId: 'team.by-key', certificate: own };
const machine = { grantTypes: ['client_credentials'], resourceServerAudiences: [DEFAULT_AUDIENCE] };
const CLIENTS = [
  {
    ...machine,
    clientId: BY_NAME.clientId,
    authMethod: 'tls_client_auth',
    certificate: { name: 'sanDns', value: 'job.team.svc' },
    senderConstraint: 'MutualTLS',
  },
  {
    ...machine,
    clientId: BY_KEY.clientId,
    authMethod: 'self_signed_tls_client_auth',
    certificate: byKey(own),
    senderConstraint: 'MutualTLS',
  },
] as const;

let mtls: MutualTlsGrantry;
beforeAll(async () => {
  mtls = await world.start({ clients: CLIENTS });
});
afterAll(async () => {
  await Promise.all(agents.map((agent) => agent.close()));
  world.maker.remove();
});

/** A fetch that trusts the server and shows this certificate where it is asked for one. */
function fetchWith({ certificate: cert, key }: MadeCertificate): typeof fetch {
  const agent = new Agent({ connect: { ca: world.server.certificate, cert, key } });
  agents.push(agent);
  const send = (url: string, init: object) => fetchOfUndici(url, { ...init, dispatcher: agent });
  return send as unknown as typeof fetch;
}

describe.each([BY_NAME, BY_KEY])('openid-client as $clientId', ({ clientId, certificate }) => {
  function discover(shown: MadeCertificate): Promise<library.Configuration> {
    const metadata = { use_mtls_endpoint_aliases: true };
    return library.discovery(new URL(mtls.grantry.issuer), clientId, metadata, library.TlsClientAuth(), {
      algorithm: 'oauth2',
      execute: [library.allowInsecureRequests],
      [library.customFetch]: fetchWith(shown) as library.CustomFetch,
    });
  }

  it('gets a token that is bound to its certificate, introspects it and revokes it', async () => {
    const config = await discover(certificate);
    const { access_token: token } = await library.clientCredentialsGrant(config, { scope: 'read' });
    const { cnf } = decodeJwt(token);
    expect(cnf).toEqual({ 'x5t#S256': expect.any(String) });
    expect(await library.tokenIntrospection(config, token)).toMatchObject({ active: true, cnf });
    await library.tokenRevocation(config, token);
    expect(await library.tokenIntrospection(config, token)).toEqual({ active: false });
  });

  it('gets an error by name with the certificate of another client', async () => {
    const config = await discover(certificate === job ? own : job);
    await expect(library.clientCredentialsGrant(config)).rejects.toMatchObject({
      status: 401,
      cause: [{ parameters: { error: 'invalid_client' } }],
    });
  });
});

describe.each([BY_NAME, BY_KEY])('oauth4webapi as $clientId', ({ clientId, certificate }) => {
  it('gets a token that is bound to its certificate', async () => {
    const insecure = { [strict.allowInsecureRequests]: true } as const;
    const issuer = new URL(mtls.grantry.issuer);
    const found = await strict.discoveryRequest(issuer, { algorithm: 'oauth2', ...insecure });
    const server = await strict.processDiscoveryResponse(issuer, found);
    const client = { client_id: clientId, use_mtls_endpoint_aliases: true };
    const answer = await strict.clientCredentialsGrantRequest(
      server,
      client,
      strict.TlsClientAuth(),
      { scope: 'read' },
      {
        [strict.customFetch]: fetchWith(certificate),
        ...insecure,
      },
    );
    const { access_token: token } = await strict.processClientCredentialsResponse(server, client, answer);
    expect(decodeJwt(token)).toMatchObject({ sub: clientId, cnf: { 'x5t#S256': expect.any(String) } });
  });
});
