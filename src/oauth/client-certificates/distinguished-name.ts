// A distinguished name as text (RFC 4514), and whether the subject of a certificate is that name. Compared as a sequence
// of sets of (OID, value): no order, escape or string type of one name can make it another.

import type { NameAttribute } from './certificate.ts';

/** One attribute that is asked for: by its text, or by the DER of its value (`#0c0161`). */
export type WantedAttribute = { readonly type: string } & (
  | { readonly text: string; readonly der?: never }
  | { readonly der: Uint8Array; readonly text?: never }
);

/** Relative distinguished names in the order of a certificate, which is the reverse of the text's. */
export type WantedName = readonly (readonly WantedAttribute[])[];

/** Why a text is no distinguished name; the words follow it in a message. */
export class DistinguishedNameError extends Error {}

/** The short names of RFC 4514 §3, and those that `openssl -nameopt RFC2253` prints beside them; in lower case. */
const TYPES: ReadonlyMap<string, string> = new Map([
  ['cn', '2.5.4.3'],
  ['sn', '2.5.4.4'],
  ['serialnumber', '2.5.4.5'],
  ['c', '2.5.4.6'],
  ['l', '2.5.4.7'],
  ['st', '2.5.4.8'],
  ['street', '2.5.4.9'],
  ['o', '2.5.4.10'],
  ['ou', '2.5.4.11'],
  ['title', '2.5.4.12'],
  ['businesscategory', '2.5.4.15'],
  ['postalcode', '2.5.4.17'],
  ['gn', '2.5.4.42'],
  ['dnqualifier', '2.5.4.46'],
  ['organizationidentifier', '2.5.4.97'],
  ['uid', '0.9.2342.19200300.100.1.1'],
  ['dc', '0.9.2342.19200300.100.1.25'],
  ['emailaddress', '1.2.840.113549.1.9.1'],
]);

const OID = /^(?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*))+$/;
const HEX = /^#(?:[0-9A-Fa-f]{2})+$/;
/** A type, then a value of escapes and of characters that need none. */
const ATTRIBUTE = /([A-Za-z][A-Za-z0-9-]*|[0-9.]+)=((?:\\(?:[0-9A-Fa-f]{2}|[ "#+,;<=>\\])|[^\\"+,;<>\0])*)/y;
const ESCAPE = /\\(?:([0-9A-Fa-f]{2})|(.))/y;

/** The name that a text stands for. @throws DistinguishedNameError */
export function parseDistinguishedName(text: string): WantedName {
  if (!text.isWellFormed()) throw new DistinguishedNameError('has half a character');
  const names: WantedAttribute[][] = [[]];
  let at = 0;
  for (;;) {
    ATTRIBUTE.lastIndex = at;
    const [whole, type = '', value = ''] = ATTRIBUTE.exec(text) ?? [];
    if (whole === undefined) {
      const place = at === 0 ? 'its beginning' : `character ${at + 1}`;
      throw new DistinguishedNameError(`has no type=value at ${place}; spaces around = and , are not allowed`);
    }
    names.at(-1)?.push(attributeOf(type, value));
    at += whole.length;
    if (at === text.length) break;
    const separator = text[at++];
    if (separator === ',') names.push([]);
    else if (separator !== '+') throw new DistinguishedNameError(`needs an escape before character ${at}`);
  }
  for (const attributes of names) rejectTwice(attributes);
  return names.reverse();
}

function attributeOf(name: string, value: string): WantedAttribute {
  const type = OID.test(name) ? name : TYPES.get(name.toLowerCase());
  if (type === undefined) throw new DistinguishedNameError(`has the unknown attribute type ${name}; write its OID`);
  if (HEX.test(value)) return { type, der: Buffer.from(value.slice(1), 'hex') };
  if (value === '' || /^[ #]/.test(value) || /(?:^|[^\\])(?:\\\\)* $/.test(value)) {
    throw new DistinguishedNameError(
      `has a value of ${name} that is empty, or begins or ends with what needs an escape`,
    );
  }
  return { type, text: unescaped(value, name) };
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Escaped bytes and plain characters together are UTF-8 (RFC 4514 §3). */
function unescaped(value: string, name: string): string {
  const bytes: Buffer[] = [];
  for (let at = 0; at < value.length; ) {
    ESCAPE.lastIndex = at;
    const [escaped, pair, special] = ESCAPE.exec(value) ?? [];
    const plain = /[^\\]*/y;
    plain.lastIndex = at;
    const part = escaped ?? plain.exec(value)?.[0] ?? '';
    bytes.push(pair === undefined ? Buffer.from(special ?? part) : Buffer.from(pair, 'hex'));
    at += part.length;
  }
  const joined = Buffer.concat(bytes);
  // A NUL ends a name for programs in C: no certificate is asked for by one.
  if (joined.includes(0)) throw new DistinguishedNameError(`has a NUL in the value of ${name}`);
  try {
    return utf8.decode(joined);
  } catch {
    throw new DistinguishedNameError(`has a value of ${name} that is not UTF-8`);
  }
}

function rejectTwice(attributes: readonly WantedAttribute[]): void {
  const seen = new Set(
    attributes.map(({ type, text, der }) => `${type}=${text ?? `#${Buffer.from(der).toString('hex')}`}`),
  );
  if (seen.size < attributes.length) throw new DistinguishedNameError('has one attribute twice in a set');
}

/** Whether the subject of a certificate is this name. */
export function isSubject(wanted: WantedName, subject: readonly (readonly NameAttribute[])[]): boolean {
  return (
    wanted.length === subject.length &&
    wanted.every((attributes, index) => isSameSet(attributes, subject[index] as readonly NameAttribute[]))
  );
}

function isSameSet(wanted: readonly WantedAttribute[], present: readonly NameAttribute[]): boolean {
  if (wanted.length !== present.length) return false;
  const left = [...present];
  return wanted.every((attribute) => {
    const index = left.findIndex((other) => isSameAttribute(attribute, other));
    if (index >= 0) left.splice(index, 1);
    return index >= 0;
  });
}

function isSameAttribute({ type, text, der }: WantedAttribute, present: NameAttribute): boolean {
  if (type !== present.type) return false;
  return der === undefined ? text === present.text : Buffer.compare(der, present.der) === 0;
}
