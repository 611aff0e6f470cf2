// client_secret_basic: id and secret, each form-encoded, in HTTP Basic (RFC 6749 §2.3.1, Appendix B).
// Many clients send the secret raw: both the decoded and, where it differs, the raw form are accepted.

import type { ClientAuthAttempt, ClientAuthMethod } from './method.ts';
import { verifySecret } from './secret-verification.ts';

const BASIC = /^basic(?: +|$)(.*)$/i;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/;

export const clientSecretBasic: ClientAuthMethod = {
  confidential: true,
  implicit: false,
  usesHeader: true,
  usesSecret: true,
  usesCertificate: false,
  signingAlgorithms: [],
  parameters: [],
  attempt({ authorization }) {
    const encoded = authorization === undefined ? undefined : BASIC.exec(authorization)?.[1];
    return encoded === undefined ? undefined : read(encoded);
  },
};

function read(encoded: string): ClientAuthAttempt {
  const pair = decodeBase64(encoded.trim());
  const colon = pair?.indexOf(':') ?? -1;
  const clientId = pair === undefined || colon < 0 ? undefined : formDecode(pair.slice(0, colon));
  if (pair === undefined || clientId === undefined) {
    return { clientId: undefined, malformed: 'basic_malformed', verify: () => verifySecret(undefined, ['']) };
  }
  const raw = pair.slice(colon + 1);
  const decoded = formDecode(raw);
  const presented = decoded === undefined || decoded === raw ? [raw] : [decoded, raw];
  return { clientId, verify: (client) => verifySecret(client, presented) };
}

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function decodeBase64(text: string): string | undefined {
  if (!BASE64.test(text)) return undefined;
  try {
    return strictUtf8.decode(Buffer.from(text, 'base64'));
  } catch {
    return undefined;
  }
}

function formDecode(text: string): string | undefined {
  if (!text.includes('%') && !text.includes('+')) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}
