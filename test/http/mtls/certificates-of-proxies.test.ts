// Certificates that a proxy hands on in a header of the public port (security row M1): believed of a configured proxy by
// the exact name alone, once.

import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Grantry } from '../../grantry.ts';
import { claimsOf, MutualTlsWorld } from './mutual-tls-grantry.ts';

const world = new MutualTlsWorld();
const { maker, authority } = world;
const job = maker.client(authority, { extensions: ['subjectAltName=DNS:job.team.svc'] });
const stranger = maker.make({ extensions: ['subjectAltName=DNS:job.team.svc'] });
const HEADER = 'x-ssl-cert';
const CLIENTS = [
  {
    clientId: 'team.job',
    authMethod: 'tls_client_auth',
    certificate: { name: 'sanDns', value: 'job.team.svc' },
    grantTypes: ['client_credentials'],
    senderConstraint: 'MutualTLS',
  },
] as const;
const FORM = new URLSearchParams({ grant_type: 'client_credentials', client_id: 'team.job' }).toString();

const started = async (header: string, proxies: readonly string[]) =>
  (await world.start({ clients: CLIENTS }, { listener: undefined, header: { name: header, proxies } })).grantry;

let grantry: Grantry;

beforeAll(async () => {
  grantry = await started(HEADER, ['10.0.0.0/8', '127.0.0.1']);
});

afterAll(() => maker.remove());

/** The answer to a token request with exactly these header lines. */
async function ask(lines: readonly string[], to = grantry): Promise<{ status: number; body: Record<string, string> }> {
  const head = ['POST /token HTTP/1.1', 'Host: localhost', 'Connection: close', `Content-Length: ${FORM.length}`];
  const type = 'Content-Type: application/x-www-form-urlencoded';
  const text = await new Promise<string>((resolve, reject) => {
    const socket = connect(to.port, '127.0.0.1', () =>
      socket.write(`${[...head, type, ...lines].join('\r\n')}\r\n\r\n${FORM}`),
    );
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('close', () => resolve(Buffer.concat(chunks).toString()));
  });
  const body = JSON.parse(text.slice(text.indexOf('\r\n\r\n'))) as Record<string, string>;
  return { status: Number(text.split(' ')[1]), body };
}

const reasonOf = (of = grantry) => of.audits().findLast(({ event }) => event === 'token.refused')?.reason;
const escaped = encodeURIComponent(job.certificate);

describe('a header of a proxy', () => {
  it('given the certificate of a client → tokens that are bound to it', async () => {
    const { status, body } = await ask([`X-SSL-Cert: ${escaped}`]);
    expect(status).toBe(200);
    expect(claimsOf(body.access_token ?? '')).toHaveProperty('cnf');
  });

  it.each([
    ['in another spelling', `X_SSL_Cert: ${escaped}`, 'certificate_missing'],
    ['in the header of another form', `Client-Cert: :${job.der.toString('base64')}:`, 'certificate_missing'],
    ['empty', 'X-SSL-Cert:', 'certificate_missing'],
    ['of a stranger', `X-SSL-Cert: ${encodeURIComponent(stranger.certificate)}`, 'certificate_untrusted'],
  ])('given the certificate %s → 401', async (_, line, reason) => {
    expect((await ask([line])).status).toBe(401);
    expect(reasonOf()).toBe(reason);
  });

  it.each([
    ['twice', [`X-SSL-Cert: ${escaped}`, `X-SSL-Cert: ${escaped}`], 'certificate_header_repeated'],
    ['twice, the second in another case', [`X-SSL-Cert: ${escaped}`, 'x-ssl-cert: '], 'certificate_header_repeated'],
    ['joined by a comma', [`X-SSL-Cert: ${escaped},${escaped}`], 'certificate_header_malformed'],
    ['as a PEM with half an escape', [`X-SSL-Cert: ${escaped}%0`], 'certificate_header_malformed'],
    ['as no PEM', ['X-SSL-Cert: certificate'], 'certificate_header_malformed'],
  ])('given the certificate %s → 400', async (_, lines, reason) => {
    const { status, body } = await ask(lines);
    expect([status, body.error, reasonOf()]).toEqual([400, 'invalid_request', reason]);
  });
});

describe('a header of another peer', () => {
  it('given the certificate once, twice or broken → ignored, whatever X-Forwarded-For says', async () => {
    const closed = await started(HEADER, ['10.0.0.0/8']);
    for (const lines of [
      [`X-SSL-Cert: ${escaped}`, 'X-Forwarded-For: 10.0.0.1'],
      [`X-SSL-Cert: ${escaped}`, `X-SSL-Cert: ${escaped}`],
      ['X-SSL-Cert: broken'],
    ]) {
      expect((await ask(lines, closed)).status).toBe(401);
      expect(reasonOf(closed)).toBe('certificate_missing');
    }
  });
});

describe('the other forms', () => {
  it.each([
    ['client-cert', `Client-Cert: :${job.der.toString('base64')}:`],
    ['x-forwarded-client-cert', `X-Forwarded-Client-Cert: Hash=ab;Cert="${escaped}";Subject="CN=client"`],
  ])('given %s → read in its form', async (header, line) => {
    const one = await started(header, ['127.0.0.1']);
    expect((await ask([line], one)).status).toBe(200);
    expect((await ask([`${header}: ${escaped}`], one)).status).toBe(400);
  });
});
