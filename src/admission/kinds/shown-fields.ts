// The fields of clients and resources that people are shown: texts without invisible parts, and web addresses.

import { text } from './manifest.ts';

// Every pattern here is in crds/ as well and must match the same strings there: no look-around, no normalization. Hosts
// are names or dotted IPv4; URL parsers read a host as IPv4 if its last label is digits or a number in C notation.
/** A port of an address, as a pattern. */
export const PORT = '([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])';
const OCTET = '(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])';
/** A dotted IPv4 address, as a pattern. */
export const IPV4 = `(${OCTET}\\.){3}${OCTET}`;
const WEB_ADDRESS = new RegExp(
  `^https?://(([A-Za-z0-9-]+\\.)*([A-Za-z-][A-Za-z0-9-]*|[0-9]+[A-WYZa-wyz-][A-Za-z0-9-]*)|${IPV4})(:${PORT})?([/?#][A-Za-z0-9._~:/?#[\\]@!$&'()*+,;=%-]*)?$`,
);

// Displayed text has no invisible parts: no control characters, line breaks, direction marks or zero-width characters.
// Joiners are allowed between letters of the scripts that spell with them, U+FE0F after a pictogram.
const SEEN = '[^\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}]';
const PICTOGRAM = '[\\p{So}\\u203C\\u2049\\u2194\\u25FB-\\u25FE\\u3030]';
const JOINED = ['L', 'M']
  .map((kind) => `[^\\P{${kind}}\\p{sc=Latin}\\p{sc=Greek}\\p{sc=Cyrillic}\\p{Default_Ignorable_Code_Point}]`)
  .join('|');
const VISIBLE = new RegExp(`^(?:${SEEN}|${PICTOGRAM}\\uFE0F|(?:${JOINED})(?:[\\u200C\\u200D](?:${JOINED}))+)+$`, 'u');

/** Text that the consent page and metadata show. */
export const label = (max: number) =>
  text(max, VISIBLE, 'is empty or holds a character that cannot be seen or turns the direction of text');

/** An http or https address of a page. */
export const webAddress = () => text(512, WEB_ADDRESS, 'is not an http or https address');
