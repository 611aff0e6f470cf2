// The options of a verifier and their defaults. A wrong option is a TypeError at the start, never a refusal of requests.

import { randomBytes } from 'node:crypto';
import { type NonceRule, ProofNonces } from '../oauth/dpop/nonces.ts';
import type { Clock } from '../oauth/ports/ports.ts';
import { isQuotable, wellKnownMetadataUrl } from '../oauth/resource/bearer-error.ts';
import type { BindingRule } from '../oauth/resource/sender-constraint.ts';
import { issuerFault } from '../oauth/values/issuer.ts';
import type { ApiRequest } from './api-request.ts';
import type { IntrospectionOptions } from './introspection.ts';
import type { Fetch } from './issuer-calls.ts';
import type { ReplayStore } from './replays.ts';

interface CommonOptions {
  /** The issuer, letter by letter as tokens name it. */
  readonly issuer: string;
  /** The identifier of this API, letter by letter as tokens name it. */
  readonly audience: string;
  /**
   * Where clients reach this API, such as `https://notes.example.com`: what DPoP proofs may name. Default: the origin of an
   * https audience. Without one no DPoP-bound tokens are taken.
   */
  readonly origins?: readonly string[];
  /** The address of the API's RFC 9728 document. Default: the well-known one of an https audience. */
  readonly metadataUrl?: string;
  /** What tokens have to be bound to. Default `None`: bearer tokens pass too. */
  readonly requireBinding?: BindingRule;
  /** The DER of the certificate of a mutual TLS connection. Default: certificate-bound tokens are refused. */
  readonly certificate?: (request: ApiRequest) => Uint8Array | undefined;
  /** Whether a POST of a form may hold the token in `access_token` (RFC 6750 §2.2). Default false. */
  readonly formBody?: boolean;
  /** How far the clocks of issuer and API may differ: 0 to 60, default 5. */
  readonly toleranceSeconds?: number;
  /** Used DPoP proofs. Default: in memory of this process, 1 000 000. */
  readonly replays?: ReplayStore;
  /**
   * Nonces of DPoP proofs. `rule`: default `on-demand`. `secrets`: what replicas make the same nonces by, at least 32 bytes
   * each, the first makes them; default: random.
   */
  readonly dpopNonce?: { readonly rule?: NonceRule; readonly secrets?: readonly Uint8Array[] };
  /** Default: that of the system. */
  readonly clock?: Clock;
  /** What calls the issuer. Default: that of the platform. */
  readonly fetch?: Fetch;
}

/** How tokens are checked: by the keys of the issuer, or by asking it about each. */
export type VerifierOptions = CommonOptions &
  (
    | { readonly mode: 'local'; readonly introspection?: undefined }
    | { readonly mode: 'introspection'; readonly introspection: IntrospectionOptions }
  );

/** The options with every default. */
export interface Settings {
  readonly origins: readonly string[];
  readonly metadataUrl: string | undefined;
  readonly requireBinding: BindingRule;
  readonly formBody: boolean;
  readonly toleranceSeconds: number;
  readonly nonces: ProofNonces;
  readonly clock: Clock;
  readonly fetch: Fetch;
}

/** A misspelt option would be one that does not protect. */
const NAMES: Readonly<Record<keyof VerifierOptions, true>> = {
  issuer: true,
  audience: true,
  mode: true,
  introspection: true,
  origins: true,
  metadataUrl: true,
  requireBinding: true,
  certificate: true,
  formBody: true,
  toleranceSeconds: true,
  replays: true,
  dpopNonce: true,
  clock: true,
  fetch: true,
};
const BINDING_RULES: readonly BindingRule[] = ['None', 'DPoP', 'MutualTLS', 'Any'];
const TOLERANCE_SECONDS = { usual: 5, most: 60 };
const SECRET_BYTES_LEAST = 32;

/** @throws TypeError for options that cannot be right */
export function settingsOf(options: VerifierOptions): Settings {
  checkForm(options);
  const { issuer, audience, requireBinding = 'None', certificate, formBody = false } = options;
  const fault = issuerFault(issuer);
  if (fault !== undefined) throw new TypeError(`issuer ${fault}`);
  if (!isQuotable(audience)) throw new TypeError('audience is empty, or has characters that no identifier has');
  const origins = originsOf(options);
  if (requireBinding === 'DPoP' && origins.length === 0) throw new TypeError('requireBinding DPoP needs origins');
  if (requireBinding === 'MutualTLS' && certificate === undefined) {
    throw new TypeError('requireBinding MutualTLS needs certificate');
  }
  const { toleranceSeconds = TOLERANCE_SECONDS.usual, metadataUrl = wellKnownMetadataUrl(audience) } = options;
  if (!(toleranceSeconds >= 0 && toleranceSeconds <= TOLERANCE_SECONDS.most)) {
    throw new TypeError(`toleranceSeconds is not within 0 and ${TOLERANCE_SECONDS.most}`);
  }
  if (metadataUrl !== undefined && !isQuotable(metadataUrl)) throw new TypeError('metadataUrl is not an address');
  const { clock = { now: () => Date.now() }, fetch = (url: string, init: RequestInit) => globalThis.fetch(url, init) } =
    options;
  const nonces = noncesOf(options);
  return { origins, metadataUrl, requireBinding, formBody, toleranceSeconds, nonces, clock, fetch };
}

/** What the types say, for an API without them: each fault here would leave a check out. */
function checkForm(options: VerifierOptions): void {
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(NAMES, name));
  if (unknown !== undefined) throw new TypeError(`there is no option ${unknown}`);
  const { issuer, audience, mode, introspection, requireBinding = 'None' } = options;
  if (typeof issuer !== 'string') throw new TypeError('issuer is no text');
  if (typeof audience !== 'string') throw new TypeError('audience is no text');
  if (mode !== 'local' && mode !== 'introspection') throw new TypeError('mode is neither local nor introspection');
  if ((introspection !== undefined) !== (mode === 'introspection')) {
    throw new TypeError('introspection is for the mode introspection, which needs it');
  }
  if (!BINDING_RULES.includes(requireBinding)) {
    throw new TypeError(`requireBinding is none of ${BINDING_RULES.join(', ')}`);
  }
}

function originsOf({ origins, audience }: VerifierOptions): readonly string[] {
  if (origins === undefined) return audience.startsWith('https://') ? [new URL(audience).origin] : [];
  const wrong = origins.find((origin) => URL.parse(origin)?.origin !== origin);
  if (wrong !== undefined) throw new TypeError(`origins has one that is no origin in its plain form: ${wrong}`);
  return origins;
}

function noncesOf({ audience, dpopNonce: { rule = 'on-demand', secrets = [randomBytes(32)] } = {} }: VerifierOptions) {
  if (secrets.length === 0 || secrets.some(({ length }) => length < SECRET_BYTES_LEAST)) {
    throw new TypeError(`dpopNonce.secrets has fewer than ${SECRET_BYTES_LEAST} bytes in one of them`);
  }
  return new ProofNonces({ issuer: audience, peppers: secrets, rule });
}
