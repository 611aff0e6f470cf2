// Counts what this process computes for a request: MACs, hashes, signatures, encryption and the JSON texts that it parses. It
// replaces functions of node:crypto and JSON.parse, so a test file imports it before any module of src/, and has a process of
// its own. Calls by the test itself do not count.

import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { KeyedHash } from '../../../src/oauth/values/keyed-hash.ts';

/** What is counted. A MAC of {@link KeyedHash} is one, and its two hashes are not counted beside it. */
export const KINDS = ['HMACs', 'hashes', 'signed', 'verified', 'ciphers', 'parsed'] as const;

export type Kind = (typeof KINDS)[number];

/** What was computed between `begin` and `end`. */
export interface ProcessWork {
  readonly counts: Readonly<Record<Kind, number>>;
  /** Each call in order: its kind, and where in src/ it was made. */
  readonly places: readonly string[];
}

/** A JSON text of so many characters is small change: it is not counted. */
const SMALL_TEXT = 256;

/** Functions of node:crypto. A key that is derived counts as a MAC. */
const FUNCTIONS: Readonly<Record<string, Kind>> = {
  hash: 'hashes',
  createHash: 'hashes',
  createHmac: 'HMACs',
  hkdfSync: 'HMACs',
  sign: 'signed',
  createSign: 'signed',
  verify: 'verified',
  createVerify: 'verified',
  createCipheriv: 'ciphers',
  createDecipheriv: 'ciphers',
};

/** Methods of WebCrypto, for libraries. */
const METHODS: Readonly<Record<string, Kind>> = {
  digest: 'hashes',
  sign: 'signed',
  verify: 'verified',
  encrypt: 'ciphers',
  decrypt: 'ciphers',
};

const OWN_NAME = 'test/redis/costs/process-work.ts';
const ROOT = import.meta.filename.slice(0, -OWN_NAME.length);
/** How many lines of a stack are shown. */
const FRAMES = 4;

let places: string[] | undefined;
/** Inside a MAC, and while a stack is read: source maps are parsed for it. */
let isPaused = false;

function count(kind: Kind): void {
  if (places === undefined || isPaused) return;
  const place = paused(caller);
  if (!place.startsWith('test/')) places.push(`${kind}: ${place}`);
}

function paused<Value>(work: () => Value): Value {
  isPaused = true;
  try {
    return work();
  } finally {
    isPaused = false;
  }
}

/** The innermost lines of the project that the call came from; that of a library alone has no name. */
function caller(): string {
  const holder: { stack?: string } = {};
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 40;
  Error.captureStackTrace(holder);
  Error.stackTraceLimit = stackTraceLimit;
  const lines = (holder.stack ?? '').split('\n').map((line) => line.split(ROOT)[1]?.replace(/:\d+\)?$/, '') ?? '');
  const ofProject = lines.filter((line) => /^(?:src|test)\//.test(line) && !line.startsWith(OWN_NAME));
  return ofProject.slice(0, FRAMES).join(' < ') || 'a library';
}

/** Replaces a function by one that counts and then does the same. */
function wrap(holder: object, name: string, note: (args: readonly unknown[]) => void): void {
  const real: unknown = Reflect.get(holder, name);
  if (typeof real !== 'function') throw new TypeError(`there is no function ${name}`);
  const counting = function (this: unknown, ...args: unknown[]): unknown {
    note(args);
    return Reflect.apply(real, this, args);
  };
  Object.defineProperty(holder, name, { value: counting, configurable: true, writable: true });
}

for (const [name, kind] of Object.entries(FUNCTIONS)) wrap(crypto, name, () => count(kind));
for (const [name, kind] of Object.entries(METHODS)) {
  wrap(Object.getPrototypeOf(crypto.webcrypto.subtle) as object, name, () => count(kind));
}
syncBuiltinESMExports();

wrap(JSON, 'parse', ([text]) => {
  if (typeof text === 'string' && text.length > SMALL_TEXT) count('parsed');
});

const { of } = KeyedHash.prototype;
KeyedHash.prototype.of = function counting(message) {
  count('HMACs');
  return paused(() => of.call(this, message));
};

/** From now on calls are counted. */
export function beginCounting(): void {
  places = [];
}

/** Ends what {@link beginCounting} began. */
export function endCounting(): ProcessWork {
  const seen = places ?? [];
  places = undefined;
  const of = (kind: Kind) => seen.filter((place) => place.startsWith(`${kind}: `)).length;
  return { counts: Object.fromEntries(KINDS.map((kind) => [kind, of(kind)])) as Record<Kind, number>, places: seen };
}
