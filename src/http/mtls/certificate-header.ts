// The three forms in which proxies hand on the certificate of a TLS client, read to DER. Strict: one certificate in one
// spelling, for the value decides who the caller is.

/** A value that is not exactly one certificate in the form of its header. */
export class CertificateHeaderError extends Error {}

/**
 * The certificate in the value of a header; undefined for an empty value, which proxies set where there is none.
 * @param name in lower case: `client-cert` is RFC 9440's, `x-forwarded-client-cert` Envoy's, any other holds a
 *   URL-encoded PEM certificate
 * @throws CertificateHeaderError
 */
export function certificateInHeader(name: string, value: string): Uint8Array | undefined {
  const text = value.trim();
  if (text === '') return undefined;
  if (name === 'client-cert') return fromBase64(/^:([^:]*):$/.exec(text)?.[1] ?? '');
  return fromEscapedPem(name === 'x-forwarded-client-cert' ? certOf(text) : text);
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const PEM = /^\s*-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----\s*$/;

function fromEscapedPem(text: string): Uint8Array {
  return fromBase64(PEM.exec(unescaped(text))?.[1]?.replaceAll(/\s/g, '') ?? '');
}

function fromBase64(text: string): Uint8Array {
  if (!BASE64.test(text)) throw new CertificateHeaderError('not one certificate in base64');
  return Buffer.from(text, 'base64');
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new CertificateHeaderError('a broken escape');
  }
}

/** One `key=value` of an element, with the separator behind it. */
const PAIR = /([A-Za-z]+)=(?:"((?:[^"\\]|\\.)*)"|([^",;=]*))(;|$)/y;

/** The `Cert` of the one element of Envoy's header: a second element would be of another hop. */
function certOf(text: string): string {
  const certificates: string[] = [];
  PAIR.lastIndex = 0;
  while (PAIR.lastIndex < text.length) {
    const [pair, key = '', quoted, plain] = PAIR.exec(text) ?? [];
    if (pair === undefined) throw new CertificateHeaderError('not one element of pairs');
    if (key.toLowerCase() === 'cert') certificates.push(quoted?.replaceAll(/\\(.)/g, '$1') ?? plain ?? '');
  }
  const [only, ...more] = certificates;
  if (only === undefined || more.length > 0) throw new CertificateHeaderError('not one Cert');
  return only;
}
