// Validates the template of a generated Secret: the keys, further literals and labels that an owner requests.
// client-secret-manifest.ts makes the Secret from it.

import type { Fault } from '../kinds/conditions.ts';
import type { FieldPath } from '../kinds/field-path.ts';
import { DATA_KEY } from '../kinds/manifest.ts';
import type { OAuthClientSpec } from '../kinds/oauth-client.ts';
import { quoted } from '../kinds/quoted.ts';
import { metadataDomain, metadataKey } from '../kinds/secret-metadata.ts';
import { SECRET_VARIABLES, STAGED_SUFFIX, scopesText } from './client-secret-manifest.ts';

type ClientSecretSpec = NonNullable<OAuthClientSpec['auth']['clientSecret']>;

const SECRET_PATH: FieldPath = ['spec', 'auth', 'clientSecret'];

/** Every fault of the template of a generated Secret. @param scopes of the client, which a literal may quote */
export function secretTemplateFaults(
  spec: ClientSecretSpec,
  scopes: readonly string[],
): readonly Fault<'InvalidSecretTemplate'>[] {
  return [
    ...keyFaults(spec),
    ...literalFaults(spec, scopes),
    ...secretMetadataFaults([...SECRET_PATH, 'secretTemplate'], spec.secretTemplate),
  ];
}

function fault(path: FieldPath, message: string): Fault<'InvalidSecretTemplate'> {
  return { path: [...SECRET_PATH, ...path], reason: 'InvalidSecretTemplate', message };
}

/** Of the 253 characters of a key, those that the suffix of a staged secret leaves. */
const KEY_MAX = 253 - STAGED_SUFFIX.length;

/** A key may be set by one field of the template only. */
function keyFaults({ keys, extraData, randomKeys }: ClientSecretSpec): readonly Fault<'InvalidSecretTemplate'>[] {
  const taken = new Set<string>();
  const claims: readonly { readonly path: FieldPath; readonly key: string }[] = [
    ...Object.entries(keys).flatMap(([name, key]) => (key === undefined ? [] : [{ path: ['keys', name], key }])),
    ...randomKeys.map((key, index) => ({ path: ['randomKeys', index], key })),
    ...Object.keys(extraData).map((key) => ({ path: ['extraData', key], key })),
  ];
  return claims.flatMap(({ path, key }) => {
    if (taken.has(key)) return [fault(path, `The key ${quoted(key)} is already used for another value.`)];
    taken.add(key);
    if (key.length > KEY_MAX || !DATA_KEY.test(key)) {
      return [fault(path, `This is not a key of a Secret: up to ${KEY_MAX} letters, digits, -, _ and . only.`)];
    }
    return key.endsWith(STAGED_SUFFIX) ? [fault(path, `Keys that end in ${STAGED_SUFFIX} are reserved.`)] : [];
  });
}

/** The most bytes of all literals of a client together; {@link variableBytes} defines the bytes of a variable. */
const LITERAL_BYTES_MAX = 64 * 1024;
/** More than most addresses: a short variable must not stand for any number of long ones. */
const VARIABLE_BYTES = 256;
const SCOPES = `\${SCOPES}`;
const VARIABLE = /\$\{[^}]*\}?/g;

function literalFaults(
  { extraData }: ClientSecretSpec,
  scopes: readonly string[],
): readonly Fault<'InvalidSecretTemplate'>[] {
  const known = [...SECRET_VARIABLES.keys()].map((name) => `\${${name}}`);
  const unknown = Object.entries(extraData).flatMap(([key, literal]) => {
    if ((literal.match(VARIABLE) ?? []).every((variable) => known.includes(variable))) return [];
    return [fault(['extraData', key], `Only ${known.join(', ')} can be filled in.`)];
  });
  const bytes = Object.values(extraData).reduce((sum, literal) => sum + literalBytes(literal, scopes), 0);
  if (bytes <= LITERAL_BYTES_MAX) return unknown;
  const message = `The literals have more than ${LITERAL_BYTES_MAX / 1024} KiB together, where each variable counts as ${VARIABLE_BYTES} bytes, and the scopes as what is more.`;
  return [...unknown, fault(['extraData'], message)];
}

function literalBytes(literal: string, scopes: readonly string[]): number {
  const variables = literal.match(VARIABLE) ?? [];
  const text = Buffer.byteLength(literal.replaceAll(VARIABLE, ''));
  return variables.reduce((sum, variable) => sum + variableBytes(variable, scopes), text);
}

/** The scopes count with their length, which may exceed that of any address. */
function variableBytes(variable: string, scopes: readonly string[]): number {
  return variable === SCOPES ? Math.max(VARIABLE_BYTES, Buffer.byteLength(scopesText(scopes))) : VARIABLE_BYTES;
}

/** The labels and annotations that an owner requests on a Secret that grantry writes. */
interface SecretMetadata {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

const NAME_FORM = 'up to 63 letters, digits, -, _ and .';
const LABEL_VALUE = /^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/;

/**
 * Labels and annotations that a Secret written by grantry must not have: malformed and reserved ones.
 * @param path the path of the template
 */
export function secretMetadataFaults(
  path: FieldPath,
  template: SecretMetadata,
): readonly Fault<'InvalidSecretTemplate'>[] {
  return (['labels', 'annotations'] as const).flatMap((field) =>
    Object.entries(template[field]).flatMap(([key, value]) => {
      const message = metadataFault(key, field === 'labels' ? value : '');
      return message === undefined
        ? []
        : [{ path: [...path, field, key], reason: 'InvalidSecretTemplate' as const, message }];
    }),
  );
}

function metadataFault(key: string, labelValue: string): string | undefined {
  const kind = metadataKey(key);
  if (kind === 'malformed')
    return `This is not the key of a label or annotation: ${NAME_FORM}, after an optional prefix.`;
  if (!LABEL_VALUE.test(labelValue)) return `The value is not one that a label may have: ${NAME_FORM}, or empty.`;
  return kind === 'reserved' ? `Keys under ${quoted(metadataDomain(key))} are reserved; leave it out.` : undefined;
}
