// The keys and algorithms that verify the assertions of a private_key_jwt client (RFC 7523 §3): the keys are in its
// manifest, in a ConfigMap of its namespace, or at an address. Their shape is validated; none is imported here.

import type { AssertionSettings } from '../../oauth/registry/client.ts';
import { readJwkSet, type VerificationKey } from '../../oauth/values/jwk.ts';
import { type JwksUriFault, jwksUriFault } from '../../oauth/values/jwks-uri.ts';
import type { SigningAlgorithm } from '../../oauth/values/signature.ts';
import type { Fault, FaultReason } from '../kinds/conditions.ts';
import type { FieldPath } from '../kinds/field-path.ts';
import type { ObjectIdentity } from '../kinds/manifest.ts';
import type { CommonSpec, OAuthClientSpec } from '../kinds/oauth-client.ts';
import { quoted } from '../kinds/quoted.ts';
import { JWKS_BYTES_MAX } from '../kinds/spec-size.ts';
import { configMapText, presentKeys, type References } from '../references/references.ts';
import { KEY_PROBLEMS } from './key-problems.ts';

/** What the manifest and the objects around it say about the assertions of a client. */
export type AssertionKeys =
  | { readonly outcome: 'resolved'; readonly assertion: AssertionSettings }
  /** An offline check assumes the ConfigMap. */
  | { readonly outcome: 'assumed' }
  /** The ConfigMap is not read yet. */
  | { readonly outcome: 'pending' }
  | { readonly outcome: 'refused'; readonly fault: Fault };

type PrivateKeyJwt = NonNullable<CommonSpec['auth']['privateKeyJwt']>;
type JwksVerdict = { readonly keys: readonly VerificationKey[] } | { readonly problem: string };

const BLOCK: FieldPath = ['spec', 'auth', 'privateKeyJwt'];
const CONFIG_MAP: FieldPath = [...BLOCK, 'jwksConfigMapRef'];
const KEY_SOURCES = ['jwks', 'jwksUri', 'jwksConfigMapRef'] as const;
const ALGORITHMS: readonly SigningAlgorithm[] = ['ES256', 'ES384', 'PS256', 'RS256', 'EdDSA'];
/** RS256 only where the manifest names it: PKCS #1 v1.5 is for clients that know nothing newer. */
const DEFAULT_ALGORITHMS = ALGORITHMS.filter((algorithm) => algorithm !== 'RS256');

/** Whether the policy of a client permits the host of its address: policy-violations.ts. */
const JWKS_URI_PROBLEMS: Readonly<Record<JwksUriFault, string>> = {
  not_https: 'is not an https address',
  userinfo: 'holds a user name or password',
  fragment: 'has a fragment',
  address_literal: 'has an IP address in place of the name of its host',
  malformed: 'is not an address in the form browsers show, with its host in lower case',
};

/** The faults of the algorithms, which the manifest alone decides. */
export function algorithmFaults({ auth }: Pick<CommonSpec, 'auth'>): readonly Fault[] {
  return (auth.privateKeyJwt?.signingAlgorithms ?? []).flatMap((name, index) => {
    if (isAlgorithm(name)) return [];
    const message = `The algorithm ${quoted(name)} is not available; there are ${ALGORITHMS.join(', ')}.`;
    return [fault('InvalidManifest', [...BLOCK, 'signingAlgorithms', index], message)];
  });
}

/** The keys of a private_key_jwt client, looked up in its own namespace only. */
export function assertionKeys(
  object: ObjectIdentity,
  spec: Pick<OAuthClientSpec, 'auth'>,
  references: Pick<References, 'configMap' | 'jwksOf'>,
): AssertionKeys {
  const { privateKeyJwt: block } = spec.auth;
  const given = block === undefined ? [] : KEY_SOURCES.filter((source) => block[source] !== undefined);
  if (block === undefined || given.length !== 1) {
    const found = given.length === 0 ? 'there is none' : `there are ${given.join(' and ')}`;
    const message = `The keys must have exactly one source, jwks, jwksUri or jwksConfigMapRef, and ${found}.`;
    return { outcome: 'refused', fault: fault('InvalidJwks', BLOCK, message) };
  }
  const { jwks, jwksUri, jwksConfigMapRef } = block;
  if (jwksConfigMapRef !== undefined) return keysOfConfigMap(object, block, references);
  if (jwksUri === undefined) return outcomeOf(assertionBy(block, jwks), [...BLOCK, 'jwks']);
  const unusable = jwksUriFault(jwksUri);
  if (unusable !== undefined) {
    const message = `${quoted(jwksUri)} ${JWKS_URI_PROBLEMS[unusable]}.`;
    return { outcome: 'refused', fault: fault('InvalidJwks', [...BLOCK, 'jwksUri'], message) };
  }
  return { outcome: 'resolved', assertion: settings(block, { jwksUri }, DEFAULT_ALGORITHMS) };
}

function keysOfConfigMap(
  { namespace, uid }: ObjectIdentity,
  block: PrivateKeyJwt,
  references: Pick<References, 'configMap' | 'jwksOf'>,
): AssertionKeys {
  const { name = '', key = '' } = block.jwksConfigMapRef ?? {};
  const configMap = references.configMap(namespace, name);
  if (configMap === 'assumed') return { outcome: 'assumed' };
  if (configMap === 'withheld') {
    const keys = references.jwksOf(uid);
    if (keys === undefined) return { outcome: 'pending' };
    // The controller stores keys that can be used; a change of signingAlgorithms is on its way to it.
    const assertion = assertionOf(block, keys);
    return 'keys' in assertion ? { outcome: 'resolved', assertion } : { outcome: 'pending' };
  }
  if (configMap === undefined) {
    const message = `There is no ConfigMap ${quoted(name)} in this namespace.`;
    return { outcome: 'refused', fault: fault('ConfigMapNotFound', [...CONFIG_MAP, 'name'], message) };
  }
  const text = configMapText(configMap, key);
  if (text === undefined) {
    const message = `The ConfigMap ${quoted(name)} has no key ${quoted(key)}; ${presentKeys({ data: configMap.data })}.`;
    return { outcome: 'refused', fault: fault('InvalidJwks', [...CONFIG_MAP, 'key'], message) };
  }
  const parsed = parsedJwks(text);
  return outcomeOf('problem' in parsed ? parsed : assertionBy(block, parsed.value), CONFIG_MAP);
}

function outcomeOf(found: AssertionSettings | { readonly problem: string }, path: FieldPath): AssertionKeys {
  if ('keys' in found) return { outcome: 'resolved', assertion: found };
  return { outcome: 'refused', fault: fault('InvalidJwks', path, found.problem) };
}

function parsedJwks(text: string): { readonly value: unknown } | { readonly problem: string } {
  if (Buffer.byteLength(text) > JWKS_BYTES_MAX) {
    return { problem: `The JWK Set is larger than ${JWKS_BYTES_MAX / 1024} KiB.` };
  }
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return { problem: 'This is not JSON; it must be a JWK Set (RFC 7517 section 5).' };
  }
}

function assertionBy(block: PrivateKeyJwt, jwks: unknown): AssertionSettings | { readonly problem: string } {
  const verdict = validateJwks(jwks);
  return 'problem' in verdict ? verdict : assertionOf(block, verdict.keys);
}

function validateJwks(jwks: unknown): JwksVerdict {
  const set = readJwkSet(jwks);
  if (set === 'malformed')
    return { problem: 'This is no JWK Set: an object with a list of keys (RFC 7517 section 5).' };
  if (set === 'too_many_keys')
    return { problem: 'It has more than 16 keys; leave out those that are not used any more.' };
  const { keys, faults } = set;
  const leaked = faults.find((each) => each.fault === 'private_member');
  const worst = leaked ?? (keys.length === 0 ? faults[0] : undefined);
  if (worst !== undefined) return { problem: `keys[${worst.index}] ${KEY_PROBLEMS[worst.fault]}.` };
  return keys.length === 0 ? { problem: 'It has no keys.' } : { keys };
}

function assertionOf(
  block: PrivateKeyJwt,
  keys: readonly VerificationKey[],
): AssertionSettings | { readonly problem: string } {
  const allowed = chosenAlgorithms(block) ?? DEFAULT_ALGORITHMS;
  const jwks = keys.filter(({ algorithms }) => algorithms.some((algorithm) => allowed.includes(algorithm)));
  if (jwks.length > 0) {
    const fitting = allowed.filter((algorithm) => jwks.some(({ algorithms }) => algorithms.includes(algorithm)));
    return settings(block, jwks, fitting);
  }
  const only = [...new Set(keys.flatMap(({ algorithms }) => algorithms))].join(' and ');
  return { problem: `No key fits ${allowed.join(', ')}: they are for ${only}, which signingAlgorithms must name.` };
}

function settings(
  block: PrivateKeyJwt,
  keys: AssertionSettings['keys'],
  fitting: readonly SigningAlgorithm[],
): AssertionSettings {
  const { acceptTokenEndpointAudience } = block;
  return { keys, algorithms: chosenAlgorithms(block) ?? fitting, acceptTokenEndpointAudience };
}

function chosenAlgorithms({ signingAlgorithms }: PrivateKeyJwt): readonly SigningAlgorithm[] | undefined {
  const chosen = signingAlgorithms.filter(isAlgorithm);
  return chosen.length > 0 ? chosen : undefined;
}

function isAlgorithm(name: string): name is SigningAlgorithm {
  return (ALGORITHMS as readonly string[]).includes(name);
}

function fault(reason: FaultReason, path: FieldPath, message: string): Fault {
  return { path, reason, message };
}
