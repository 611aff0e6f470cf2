// The listener for mutual TLS on real sockets (RFC 8705 §2, §3; security rows M1–M4): which certificate authenticates a client,
// what its tokens are bound to, and what resumed sessions and changed files do to that.

import { createHash } from 'node:crypto';
import { copyFileSync, writeFileSync } from 'node:fs';
import { connect as connectPlain } from 'node:net';
import { connect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { issuerPath } from '../../../src/oauth/values/issuer.ts';
import { DEFAULT_AUDIENCE, PKCE } from '../../grantry.ts';
import { byKey, claimsOf, type MutualTlsGrantry, MutualTlsWorld } from './mutual-tls-grantry.ts';

const world = new MutualTlsWorld();
const { maker, authority } = world;
const job = maker.client(authority, { subject: '/CN=job', extensions: ['subjectAltName=DNS:job.team.svc'] });
const renewed = maker.client(authority, { subject: '/CN=job', extensions: ['subjectAltName=DNS:job.team.svc'] });
const other = maker.client(authority, { subject: '/CN=other', extensions: ['subjectAltName=DNS:other.team.svc'] });
const short = maker.client(authority, { extensions: ['subjectAltName=DNS:job.team.svc'], days: 1 });
const own = maker.make({ subject: '/CN=own' });
const stranger = maker.make({ subject: '/CN=stranger', extensions: ['subjectAltName=DNS:job.team.svc'] });
const SECRET = 'a-secret-of-more-than-thirty-two-bytes';

const grantTypes = ['client_credentials'];
const CLIENTS = [
  {
    clientId: 'team.job',
    authMethod: 'tls_client_auth',
    grantTypes,
    certificate: { name: 'sanDns', value: 'job.team.svc' },
  },
  {
    clientId: 'team.bound',
    grantTypes,
    authMethod: 'tls_client_auth',
    certificate: { name: 'sanDns', value: 'job.team.svc' },
    senderConstraint: 'MutualTLS',
  },
  {
    clientId: 'team.opaque',
    authMethod: 'tls_client_auth',
    certificate: { name: 'subjectDn', value: 'CN=job' },
    senderConstraint: 'MutualTLS',
    resourceServerAudiences: [DEFAULT_AUDIENCE],
  },
  { clientId: 'team.own', authMethod: 'self_signed_tls_client_auth', grantTypes, certificate: byKey(own) },
  { clientId: 'team.secret', secret: SECRET, senderConstraint: 'MutualTLS' },
  { clientId: 'team.public', authMethod: 'none', senderConstraint: 'MutualTLS' },
] as const;

let mtls: MutualTlsGrantry;

beforeAll(async () => {
  mtls = await world.start({ clients: CLIENTS, trustedProxies: ['127.0.0.1'] });
});

afterAll(() => maker.remove());

const basic = { authorization: `Basic ${Buffer.from(`team.secret:${SECRET}`).toString('base64')}` };
const thumbprint = (der: Buffer) => createHash('sha256').update(der).digest('base64url');

describe('a client', () => {
  it('given its certificate and its client_id → tokens that are bound to nothing', async () => {
    const { status, body } = await mtls.tokens('team.job', { certificate: job });
    expect(status).toBe(200);
    expect(body.token_type).toBe('Bearer');
    expect(claimsOf(body.access_token)).not.toHaveProperty('cnf');
  });

  it('given its self-signed certificate → tokens', async () => {
    expect((await mtls.tokens('team.own', { certificate: own })).status).toBe(200);
  });

  it.each([
    ['no certificate', 'team.job', undefined, 'certificate_missing'],
    ['the certificate of another name', 'team.job', other, 'certificate_name_mismatch'],
    ['its name by an unknown authority', 'team.job', stranger, 'certificate_untrusted'],
    ['the certificate of another key', 'team.own', stranger, 'certificate_key_mismatch'],
    ['no certificate for its key', 'team.own', undefined, 'certificate_missing'],
    ['an id that no client has', 'team.nobody', job, 'client_unknown'],
    ['a client that has a secret', 'team.secret', job, 'auth_method_mismatch'],
  ])('given %s → 401 invalid_client', async (_, clientId, certificate, reason) => {
    const { status, body } = await mtls.tokens(clientId, { certificate });
    expect([status, body.error, mtls.lastReason()]).toEqual([401, 'invalid_client', reason]);
  });

  it('given no client_id → 401 invalid_client', async () => {
    const { status, body } = await mtls.post('/token', { grant_type: 'client_credentials' }, { certificate: job });
    expect([status, body.error, mtls.lastReason()]).toEqual([401, 'invalid_client', 'credentials_missing']);
  });

  it('given its certificate on the public port, where there is no TLS → 401', async () => {
    const form = { grant_type: 'client_credentials', client_id: 'team.job' };
    expect((await mtls.grantry.post('/token', form)).status).toBe(401);
  });

  it('given a header with its certificate, on either port → 401: no header is configured', async () => {
    const headers = { 'client-cert': `:${job.der.toString('base64')}:` };
    expect((await mtls.tokens('team.job', { headers })).status).toBe(401);
    const form = { grant_type: 'client_credentials', client_id: 'team.job' };
    expect((await mtls.grantry.post('/token', form, { headers })).status).toBe(401);
  });

  it('given an expired certificate → 401', async () => {
    expect((await mtls.tokens('team.job', { certificate: short })).status).toBe(200);
    mtls.grantry.clock.advance(2 * 86_400_000);
    const { status } = await mtls.tokens('team.job', { certificate: short });
    mtls.grantry.clock.advance(-2 * 86_400_000);
    expect([status, mtls.lastReason()]).toEqual([401, 'certificate_expired']);
  });
});

describe('a token of a client with senderConstraint MutualTLS', () => {
  it('given the certificate that authenticates the client → bound to it', async () => {
    const { body } = await mtls.tokens('team.bound', { certificate: job });
    expect(body.token_type).toBe('Bearer');
    expect(claimsOf(body.access_token).cnf).toEqual({ 'x5t#S256': thumbprint(job.der) });
  });

  it('given a secret and any certificate → bound to that', async () => {
    const form = { grant_type: 'client_credentials' };
    const { body } = await mtls.post('/token', form, { certificate: stranger, headers: basic });
    expect(claimsOf(body.access_token).cnf).toEqual({ 'x5t#S256': thumbprint(stranger.der) });
  });

  it.each([
    ['no certificate', undefined, {}, 'certificate_missing'],
    ['a DPoP proof beside the certificate', job, { dpop: 'a.b.c' }, 'dpop_proof_unexpected'],
  ])('given a secret and %s → 400 invalid_request', async (_, certificate, headers, reason) => {
    const wishes = { certificate, headers: { ...basic, ...headers } };
    const { status, body } = await mtls.post('/token', { grant_type: 'client_credentials' }, wishes);
    expect([status, body.error, mtls.lastReason()]).toEqual([400, 'invalid_request', reason]);
  });

  it('given introspection → the resource server gets the thumbprint', async () => {
    const { body } = await mtls.tokens('team.bound', { certificate: job });
    const form = { token: body.access_token, client_id: 'team.opaque' };
    const answer = await mtls.post('/introspect', form, { certificate: renewed });
    expect(answer.body).toMatchObject({ active: true, cnf: { 'x5t#S256': thumbprint(job.der) } });
  });

  it('given a refresh token of a public client → no other certificate rotates it', async () => {
    const code = await mtls.grantry.issueCode('team.public');
    const redeem = {
      grant_type: 'authorization_code',
      client_id: 'team.public',
      code,
      redirect_uri: 'https://app.example/cb',
      code_verifier: PKCE.verifier,
    };
    const first = await mtls.post('/token', redeem, { certificate: own });
    const rotate = { grant_type: 'refresh_token', client_id: 'team.public', refresh_token: first.body.refresh_token };
    const stolen = await mtls.post('/token', rotate, { certificate: stranger });
    expect([stolen.status, stolen.body.error]).toEqual([400, 'invalid_grant']);
    const { status, body } = await mtls.post('/token', rotate, { certificate: own });
    expect(status).toBe(200);
    expect(claimsOf(body.access_token).cnf).toEqual({ 'x5t#S256': thumbprint(own.der) });
  });
});

describe('a resumed session', () => {
  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'given %s → its certificate is accepted, and verified again',
    async (version) => {
      const first = await mtls.tokens('team.job', { certificate: job, version });
      const { session } = first;
      expect([first.status, first.isResumed, session === undefined]).toEqual([200, false, false]);
      const again = await mtls.tokens('team.job', { session, version });
      expect([again.status, again.isResumed]).toEqual([200, true]);

      world.trust(maker.authority('/CN=Successor'));
      await mtls.grantry.mutualTls?.refresh();
      const refused = await mtls.tokens('team.job', { session: again.session ?? session, version });
      expect([refused.status, refused.isResumed, mtls.lastReason()]).toEqual([401, true, 'certificate_untrusted']);

      world.trust(authority);
      await mtls.grantry.mutualTls?.refresh();
      expect((await mtls.tokens('team.job', { certificate: job, version })).status).toBe(200);
    },
  );
});

describe('the files', () => {
  it('given a broken file of authorities → the old ones stay, and a log line says so once', async () => {
    writeFileSync(world.caFile, 'nothing');
    await mtls.grantry.mutualTls?.refresh();
    await mtls.grantry.mutualTls?.refresh();
    expect((await mtls.tokens('team.job', { certificate: job })).status).toBe(200);
    const lines = mtls.grantry.logs().filter(({ level, files }) => level === 'error' && files !== undefined);
    expect(lines).toHaveLength(1);
    world.trust(authority);
    await mtls.grantry.mutualTls?.refresh();
  });

  it('given a renewed certificate of the server → new connections get it; a broken one changes nothing', async () => {
    const before = await served();
    const { certificateFile, keyFile } = world.server;
    writeFileSync(keyFile, 'nothing');
    await mtls.grantry.mutualTls?.refresh();
    expect(await served()).toBe(before);
    const next = maker.make({ subject: '/CN=localhost' });
    copyFileSync(next.keyFile, keyFile);
    // Half of a renewal: a key without its certificate.
    await mtls.grantry.mutualTls?.refresh();
    expect(await served()).toBe(before);
    copyFileSync(next.certificateFile, certificateFile);
    await mtls.grantry.mutualTls?.refresh();
    expect(await served()).toBe(thumbprint(next.der));
    expect((await mtls.tokens('team.job', { certificate: job })).status).toBe(200);
  });

  function served(): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port: mtls.port, rejectUnauthorized: false }, () => {
        const { raw } = socket.getPeerCertificate();
        socket.destroy();
        resolve(thumbprint(raw));
      });
      socket.on('error', reject);
    });
  }
});

describe('the listener', () => {
  it('given the endpoints of programs → served; those of browsers → 404', async () => {
    expect((await mtls.get('/.well-known/jwks.json')).status).toBe(200);
    expect((await mtls.get('/authorize?client_id=team.public')).status).toBe(404);
    expect((await mtls.post('/revoke', { client_id: 'team.job', token: 'x' }, { certificate: job })).status).toBe(200);
  });

  it('given metadata → the aliases, and that tokens can be bound', async () => {
    const { issuer } = mtls.grantry;
    const base = `https://localhost:${mtls.port}${issuerPath(issuer)}`;
    const { body } = await mtls.get('/.well-known/oauth-authorization-server');
    expect(body).toMatchObject({
      issuer,
      token_endpoint: `${issuer}/token`,
      tls_client_certificate_bound_access_tokens: true,
      mtls_endpoint_aliases: {
        token_endpoint: `${base}/token`,
        revocation_endpoint: `${base}/revoke`,
        introspection_endpoint: `${base}/introspect`,
        userinfo_endpoint: `${base}/userinfo`,
      },
    });
    expect(body.token_endpoint_auth_methods_supported).toContain('self_signed_tls_client_auth');
  });

  it('given X-Forwarded-For from the address of a trusted proxy → ignored: only the caller itself can have written it', async () => {
    await mtls.tokens('team.job', { headers: { 'x-forwarded-for': '203.0.113.9' } });
    expect(mtls.grantry.audits().findLast(({ event }) => event === 'token.refused')?.address).toBe('127.0.0.1');
  });

  it('given plain HTTP → the connection ends', async () => {
    const ended = new Promise<string>((resolve) => {
      const socket = connectPlain(mtls.port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'));
      const chunks: Buffer[] = [];
      socket.on('data', (chunk) => chunks.push(chunk));
      socket.on('error', () => {});
      socket.on('close', () => resolve(Buffer.concat(chunks).toString('latin1')));
    });
    expect(await ended).not.toContain('HTTP/1.1');
  });
});
