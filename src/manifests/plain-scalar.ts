// Which plain scalars are numbers: decided as `resolve` of go.yaml.in/yaml/v2 does, by which kubectl and the API server
// read manifests. Neither version 1.1 nor 1.2 of YAML is that set: `e0` is text, `1_0` is 10, `017` is 15, `08` is 8.

import type { ScalarTag } from 'yaml';

/** Group 1 is the sign. A decimal with more digits is a float, as one that needs more than 64 bits is. */
const INTEGER = /^([-+]?)(0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|0[0-7]*|[1-9][0-9]{0,19})$/;
/** After this prefix, and no other, a sign is read as well. */
const SIGNED_BINARY = /^0b([-+])([01]+)$/;
const FLOAT = /^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$/;
/** The underscores of a number that begins with a dot. Of others every one is left out. */
const BETWEEN_DIGITS = /(?<=[0-9])_(?=[0-9])/g;
const INFINITE = /^[-+]?\.(inf|Inf|INF)$/;
const NOT_A_NUMBER = /^\.(nan|NaN|NAN)$/;

/** The number that a plain scalar stands for, or the text that it is. */
function numberOrText(text: string): number | string {
  if (INFINITE.test(text)) return text.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  if (NOT_A_NUMBER.test(text)) return Number.NaN;
  const plain = text.replaceAll(text.startsWith('.') ? BETWEEN_DIGITS : '_', '');
  const [, sign, digits] = INTEGER.exec(plain) ?? [];
  if (digits !== undefined) {
    const isOctal = /^0[0-7]/.test(digits);
    const number = integerOf(sign ?? '', isOctal ? `0o${digits}` : digits);
    if (number !== undefined) return number;
  }
  const [, signOfBinary, ones] = SIGNED_BINARY.exec(plain) ?? [];
  const binary = ones === undefined ? undefined : integerOf(signOfBinary ?? '', `0b${ones}`);
  if (binary !== undefined) return binary;
  const float = FLOAT.test(plain) ? Number(plain) : Number.NaN;
  return Number.isFinite(float) ? float : text;
}

/** Undefined where it fits no integer of 64 bits: one with a sign is signed. */
function integerOf(sign: string, digits: string): number | undefined {
  const size = BigInt(digits);
  const limit = sign === '' ? 2n ** 64n - 1n : 2n ** 63n - (sign === '-' ? 0n : 1n);
  if (size > limit) return undefined;
  return Number(sign === '-' ? -size : size);
}

const MAY_BE_NUMBER = /^[-+.0-9]/;

/** The tags of numbers. */
export const NUMBER_TAGS: readonly ScalarTag[] = ['int', 'float'].map((name) => ({
  tag: `tag:yaml.org,2002:${name}`,
  default: true,
  test: MAY_BE_NUMBER,
  resolve: numberOrText,
}));
