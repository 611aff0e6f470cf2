// The GRANTRY_MTLS_ and GRANTRY_CLIENT_C… variables: where clients reach grantry by mutual TLS, and where their certificates
// come from: the listener's own handshake, or the header of a proxy. `config.ts` reads them together with all others.

import { z } from 'zod';
import { networks } from './networks.ts';
import { port } from './port.ts';

const file = z.string().min(1);

/** Headers that mean something else: a certificate in one would be read as that. */
const TAKEN = new Set([
  'authorization',
  'connection',
  'content-length',
  'content-type',
  'cookie',
  'dpop',
  'host',
  'origin',
]);
const HEADER_NAME = /^[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*$/;

/** The schema of each variable, with its description. */
export const MTLS_VARIABLES = {
  GRANTRY_MTLS_URL: z
    .string()
    .superRefine((text, context) => {
      const message = originFault(text);
      if (message) context.addIssue({ code: 'custom', message });
    })
    .optional()
    .describe(
      'Where clients reach grantry by mutual TLS: an https origin; the paths are the issuer’s. It turns mutual TLS on, and the controller needs it as well as the token servers. Unset: off.',
    ),
  GRANTRY_MTLS_PORT: port
    .optional()
    .describe('The port of the listener that asks for client certificates. Unset: no listener.'),
  GRANTRY_MTLS_CERT_FILE: file
    .optional()
    .describe(
      'The PEM certificate chain of that listener; needed with its port. Like the key and the authorities it is read again every minute.',
    ),
  GRANTRY_MTLS_KEY_FILE: file.optional().describe('The PEM key of that certificate.'),
  GRANTRY_CLIENT_CA_FILE: file
    .optional()
    .describe(
      'PEM certificates of the authorities that issue the certificates of clients directly: intermediates belong here, too. Unset: only self-signed certificates authenticate clients.',
    ),
  GRANTRY_CLIENT_CERT_HEADER: z
    .string()
    .regex(HEADER_NAME, 'is not the name of a header: letters, digits and single hyphens')
    .transform((name) => name.toLowerCase())
    .refine((name) => !TAKEN.has(name), 'is a header that means something else')
    .optional()
    .describe(
      'The header in which a proxy hands on the certificate of a client to the public port: `Client-Cert` (RFC 9440), `X-Forwarded-Client-Cert` (Envoy), or another one with a URL-encoded PEM certificate (nginx).',
    ),
  GRANTRY_CLIENT_CERT_PROXIES: networks
    .optional()
    .describe(
      'Addresses and CIDR blocks, separated by commas, of the proxies whose `GRANTRY_CLIENT_CERT_HEADER` is believed. A peer in them can pose as every client with a certificate.',
    ),
} as const;

type Variable = keyof typeof MTLS_VARIABLES;

/** The configuration of mutual TLS. */
export interface MtlsSettings {
  /** An https origin. */
  readonly url: string;
  /** Undefined: certificates come from the header only. */
  readonly listener: { readonly port: number; readonly certificateFile: string; readonly keyFile: string } | undefined;
  /** Undefined: certificates come from the listener only. The name is in lower case. */
  readonly header: { readonly name: string; readonly proxies: readonly string[] } | undefined;
  readonly clientCaFile: string | undefined;
}

const shape = z.object(MTLS_VARIABLES);
type Values = Readonly<z.output<typeof shape>>;

/** The settings from variables without a fault; undefined where mutual TLS is off. */
export function mtlsSettings(values: Values): MtlsSettings | undefined {
  const {
    GRANTRY_MTLS_URL: url,
    GRANTRY_MTLS_PORT: listenerPort,
    GRANTRY_MTLS_CERT_FILE: certificateFile,
    GRANTRY_MTLS_KEY_FILE: keyFile,
    GRANTRY_CLIENT_CERT_HEADER: name,
    GRANTRY_CLIENT_CERT_PROXIES: proxies,
  } = values;
  if (url === undefined) return undefined;
  const hasListener = listenerPort !== undefined && certificateFile !== undefined && keyFile !== undefined;
  return {
    url,
    listener: hasListener ? { port: listenerPort, certificateFile, keyFile } : undefined,
    header: name === undefined || proxies === undefined ? undefined : { name, proxies },
    clientCaFile: values.GRANTRY_CLIENT_CA_FILE,
  };
}

/** Faults in the combination of variables. @param isSet whether a variable has a text */
export function mtlsFaults(isSet: (name: Variable) => boolean): readonly string[] {
  const faults: string[] = [];
  if (!isSet('GRANTRY_MTLS_URL')) {
    const others = (Object.keys(MTLS_VARIABLES) as Variable[]).filter(isSet);
    faults.push(...others.map((name) => `${name} is set, but GRANTRY_MTLS_URL, which turns mutual TLS on, is not`));
  }
  const listener = ['GRANTRY_MTLS_PORT', 'GRANTRY_MTLS_CERT_FILE', 'GRANTRY_MTLS_KEY_FILE'] as const;
  if (listener.some(isSet) && !listener.every(isSet)) faults.push(`${listener.join(', ')} need each other`);
  if (isSet('GRANTRY_CLIENT_CERT_HEADER') !== isSet('GRANTRY_CLIENT_CERT_PROXIES')) {
    faults.push(
      'GRANTRY_CLIENT_CERT_HEADER and GRANTRY_CLIENT_CERT_PROXIES need each other: a header is believed of its proxies only',
    );
  }
  return faults;
}

function originFault(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null || url.protocol !== 'https:') return 'is not an https origin, such as https://mtls.id.example.com';
  return url.origin === text ? undefined : `is not an origin in the form of browsers: write ${url.origin}`;
}
