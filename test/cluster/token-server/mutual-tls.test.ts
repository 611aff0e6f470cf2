// `grantry server` with a listener for mutual TLS: a client whose manifest names a certificate is served without any
// Secret, and what the configuration lacks ends the start with its variable.

import { request } from 'node:https';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CertificateMaker } from '../../client-certificates.ts';
import { freePort } from '../../free-port.ts';
import { claimsOf } from '../../http/mtls/mutual-tls-grantry.ts';
import { until } from '../../until.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { TokenServers } from '../setup/token-servers.ts';

const cluster = sharedCluster();
const maker = new CertificateMaker();
const authority = maker.authority();
const listener = maker.make({ subject: '/CN=localhost', extensions: ['subjectAltName=DNS:localhost'] });
const job = maker.client(authority, { extensions: ['subjectAltName=DNS:job.team.svc'] });

describe('a token server with mutual TLS', () => {
  let install: TokenServers;
  let tenant: string;
  let port: number;

  beforeAll(async () => {
    install = await TokenServers.install(cluster);
    port = await freePort();
    const environment = {
      GRANTRY_MTLS_URL: `https://localhost:${port}`,
      GRANTRY_MTLS_PORT: `${port}`,
      GRANTRY_MTLS_CERT_FILE: listener.certificateFile,
      GRANTRY_MTLS_KEY_FILE: listener.keyFile,
      GRANTRY_CLIENT_CA_FILE: authority.certificateFile,
    };
    await install.startReady(1, { environment });
    tenant = await cluster.namespace();
  });

  afterAll(async () => {
    await install?.stop();
    maker.remove();
  });

  /** The access token; undefined while there is none. */
  function token(clientId: string): Promise<string | undefined> {
    const form = new URLSearchParams({ grant_type: 'client_credentials', client_id: clientId }).toString();
    const tls = { cert: job.certificate, key: job.key, ca: listener.certificate };
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    return new Promise((resolve, reject) => {
      const sent = request(`https://localhost:${port}/token`, { method: 'POST', headers, ...tls }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk) => chunks.push(chunk));
        response.on('end', () => resolve(JSON.parse(Buffer.concat(chunks).toString()).access_token));
      });
      sent.on('error', reject);
      sent.end(form);
    });
  }

  it('given a client by the name of its certificate → a token that is bound to it, and no Secret', async () => {
    const auth = { method: 'tls_client_auth', tls: { sanDns: 'job.team.svc' } };
    const scopes = { scopes: [`${tenant}/read`], defaultScopes: [`${tenant}/read`] };
    await cluster.apply(install.manifest(tenant, 'job', { auth, senderConstraint: 'MutualTLS', ...scopes }));
    let issued: string | undefined;
    await until('the client gets a token', async () => {
      issued = await token(`${tenant}.job`);
      return issued !== undefined;
    });
    expect(claimsOf(issued ?? '')).toMatchObject({
      client_id: `${tenant}.job`,
      cnf: { 'x5t#S256': expect.any(String) },
    });
    const { body } = await cluster.call('GET', `/api/v1/namespaces/${tenant}/secrets`);
    expect(body.items).toEqual([]);
  });

  it.each([
    [{}, 'GRANTRY_MTLS_PORT'],
    [
      {
        GRANTRY_CLIENT_CERT_HEADER: 'Client-Cert',
        GRANTRY_CLIENT_CERT_PROXIES: '::1',
        GRANTRY_CLIENT_CA_FILE: '/none',
      },
      '/none',
    ],
  ])('given %o beside the URL → the start ends with 2 and names %s', async (more, named) => {
    const { process } = await install.start({ environment: { GRANTRY_MTLS_URL: 'https://mtls.id.example', ...more } });
    expect(await process.ended()).toBe(2);
    expect(process.errors).toContain(named);
  });
});
