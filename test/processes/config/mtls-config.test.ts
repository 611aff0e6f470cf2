// The variables of mutual TLS: what they become, and every combination that says nothing sound.

import { describe, expect, it } from 'vitest';
import { ConfigurationError, readSettings } from '../../../src/processes/config/config.ts';

const URL = { GRANTRY_MTLS_URL: 'https://mtls.id.example' };
const LISTENER = { GRANTRY_MTLS_PORT: '9443', GRANTRY_MTLS_CERT_FILE: '/c', GRANTRY_MTLS_KEY_FILE: '/k' };
const HEADER = { GRANTRY_CLIENT_CERT_HEADER: 'X-SSL-Cert', GRANTRY_CLIENT_CERT_PROXIES: '10.0.0.0/8, ::1' };

function faults(environment: Readonly<Record<string, string>>): readonly string[] {
  try {
    readSettings({ environment });
  } catch (error) {
    if (error instanceof ConfigurationError) return error.faults;
    throw error;
  }
  return [];
}

describe('mutual TLS', () => {
  it('given nothing → off', () => {
    expect(readSettings({ environment: {} }).mtls).toBeUndefined();
  });

  it('given a listener and a header → both, the name in lower case', () => {
    const environment = { ...URL, ...LISTENER, ...HEADER, GRANTRY_CLIENT_CA_FILE: '/ca' };
    expect(readSettings({ environment }).mtls).toEqual({
      url: 'https://mtls.id.example',
      listener: { port: 9443, certificateFile: '/c', keyFile: '/k' },
      header: { name: 'x-ssl-cert', proxies: ['10.0.0.0/8', '::1'] },
      clientCaFile: '/ca',
    });
  });

  it('given the URL alone, as for a controller → on', () => {
    expect(readSettings({ environment: URL }).mtls).toMatchObject({ url: 'https://mtls.id.example' });
  });

  it.each([
    ['http', 'http://mtls.id.example'],
    ['a path', 'https://mtls.id.example/auth'],
    ['a slash', 'https://mtls.id.example/'],
    ['the default port', 'https://mtls.id.example:443'],
    ['a user name', 'https://user@mtls.id.example'],
    ['upper case', 'https://MTLS.id.example'],
    ['no address', 'mtls'],
  ])('given a URL with %s → refused', (_, GRANTRY_MTLS_URL) => {
    expect(faults({ GRANTRY_MTLS_URL })).toEqual([expect.stringMatching(/^GRANTRY_MTLS_URL is not /)]);
  });

  it.each(['X_SSL_Cert', 'X SSL', '', '-', 'Authorization', 'cookie', 'DPoP', 'Host'])(
    'given the header %s → refused',
    (name) => {
      const found = faults({ ...URL, ...HEADER, GRANTRY_CLIENT_CERT_HEADER: name });
      expect(found).toEqual([expect.stringMatching(/^GRANTRY_CLIENT_CERT_HEADER is /)]);
    },
  );

  it.each<readonly [string, Readonly<Record<string, string>>, RegExp]>([
    [
      'a header whose proxies are not named',
      { ...URL, GRANTRY_CLIENT_CERT_HEADER: 'X-C' },
      /GRANTRY_CLIENT_CERT_PROXIES/,
    ],
    ['proxies of no header', { ...URL, GRANTRY_CLIENT_CERT_PROXIES: '::1' }, /GRANTRY_CLIENT_CERT_HEADER/],
    ['every peer as a proxy', { ...URL, ...HEADER, GRANTRY_CLIENT_CERT_PROXIES: '0.0.0.0/0' }, /every address/],
    ['a port without a certificate', { ...URL, GRANTRY_MTLS_PORT: '9443' }, /GRANTRY_MTLS_CERT_FILE/],
    ['a key without its certificate', { ...URL, GRANTRY_MTLS_KEY_FILE: '/k' }, /GRANTRY_MTLS_CERT_FILE/],
    ['authorities without a URL', { GRANTRY_CLIENT_CA_FILE: '/ca' }, /GRANTRY_MTLS_URL/],
  ])('given %s → refused', (_, environment, named) => {
    expect(faults(environment)).toEqual([expect.stringMatching(named)]);
  });
});
