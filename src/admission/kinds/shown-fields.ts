// The fields of clients and resources that people are shown: texts without invisible parts, and web addresses.

import { text } from './manifest.ts';

// Every pattern goes into crds/ and must match the same strings there: no look-around, no normalization. Hosts
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
// Joiners are allowed between letters of the scripts that spell with them, U+FE0F after a pictogram. The API server knows
// no Default_Ignorable_Code_Point: its letters, its marks and, beside format characters, all of it are written out.
const IGNORED_LETTERS = '\\u115F\\u1160\\u3164\\uFFA0';
const IGNORED_MARKS = '\\u034F\\u17B4\\u17B5\\u180B-\\u180D\\u180F\\uFE00-\\uFE0F\\u{E0100}-\\u{E01EF}';
const IGNORED =
  '\\u034F\\u115F\\u1160\\u17B4\\u17B5\\u180B-\\u180D\\u180F\\u2065\\u3164\\uFE00-\\uFE0F\\uFFA0\\uFFF0-\\uFFF8\\u{E0000}-\\u{E0FFF}';
const SEEN = `[^\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}${IGNORED}]`;
const PICTOGRAM = '[\\p{So}\\u203C\\u2049\\u2194\\u25FB-\\u25FE\\u3030]';
const joined = (kind: string, ignored: string) => `[^\\P{${kind}}\\p{sc=Latin}\\p{sc=Greek}\\p{sc=Cyrillic}${ignored}]`;
const JOINED = `${joined('L', IGNORED_LETTERS)}|${joined('M', IGNORED_MARKS)}`;
const VISIBLE = new RegExp(`^(?:${SEEN}|${PICTOGRAM}\\uFE0F|(?:${JOINED})(?:[\\u200C\\u200D](?:${JOINED}))+)+$`, 'u');

/** Text that the consent page and metadata show. */
export const label = (max: number) =>
  text(max, VISIBLE, 'is empty or holds a character that cannot be seen or turns the direction of text');

/** An http or https address of a page. */
export const webAddress = () => text(512, WEB_ADDRESS, 'is not an http or https address');
