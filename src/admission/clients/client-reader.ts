// Reads many OAuthClients whose specs differ in few fields. The common part is parsed once for each text of it and shared.
// The result equals that of the schema alone (oauth-client.ts).

import { API_VERSION, fieldsOf, metadata, objectsWith, readManifest } from '../kinds/manifest.ts';
import { OAUTH_CLIENT, type OAuthClientSpec, OWN_FIELDS } from '../kinds/oauth-client.ts';
import { isOversized } from '../kinds/spec-size.ts';
import type { ReadManifest } from './admit-client.ts';

type OwnField = keyof typeof OWN_FIELDS;
type Members = Readonly<Record<string, unknown>>;

const OWN_NAMES = Object.keys(OWN_FIELDS) as readonly OwnField[];
const NOTHING_OWN = Object.fromEntries(OWN_NAMES.map((name) => [name, undefined]));
const METADATA = metadata(objectsWith('ignore'));
const ANY = { apiVersion: API_VERSION, kind: 'OAuthClient', metadata: { name: 'any' } } as const;

/** The cache holds so many common parts, and so many characters of them, and is then cleared; those returned before stay valid. */
const MOST_KNOWN = 10_000;
const MOST_CHARACTERS = 2_000_000;
/** Longer ones are not cached: a tenant that keeps changing a client must not fill the memory of the process. */
const LONGEST_KNOWN = 2000;

/** Reads manifests in which unknown fields are ignored. */
export class ClientReader {
  /** The parsed common parts by their JSON. */
  readonly #known = new Map<string, OAuthClientSpec>();
  /** Of all its keys. */
  #characters = 0;

  /** Never throws, whatever the manifest is. */
  read(manifest: unknown): ReadManifest {
    return this.#inParts(fieldsOf(manifest)) ?? readManifest(OAUTH_CLIENT.ignore, manifest);
  }

  /** Undefined for a manifest that cannot be read in parts: the schema then names the faults, if there are any. */
  #inParts({ apiVersion, kind, metadata, spec }: Members): ReadManifest | undefined {
    if (apiVersion !== API_VERSION || kind !== 'OAuthClient' || !METADATA.safeParse(metadata).success) return undefined;
    if (typeof spec !== 'object' || spec === null || Array.isArray(spec) || isOversized({ spec })) return undefined;
    const common = this.#commonOf(spec as Members);
    const own = ownFieldsOf(spec as Members);
    return common && own && { manifest: { spec: { ...common, ...own } }, faults: [] };
  }

  #commonOf(spec: Members): OAuthClientSpec | undefined {
    const common = { ...spec, ...NOTHING_OWN };
    const text = JSON.stringify(common);
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const read = readManifest(OAUTH_CLIENT.ignore, { ...ANY, spec: common }).manifest?.spec;
    if (read === undefined || text.length > LONGEST_KNOWN) return read;
    if (this.#known.size >= MOST_KNOWN || this.#characters + text.length > MOST_CHARACTERS) {
      this.#known.clear();
      this.#characters = 0;
    }
    this.#known.set(text, read);
    this.#characters += text.length;
    return read;
  }
}

/** Undefined if one of them is not well-shaped. */
function ownFieldsOf(spec: Members): Partial<OAuthClientSpec> | undefined {
  const own: Partial<Record<OwnField, unknown>> = {};
  for (const name of OWN_NAMES) {
    const value = spec[name] ?? undefined;
    if (value === undefined) continue;
    const { success, data } = OWN_FIELDS[name].safeParse(value);
    if (!success) return undefined;
    own[name] = data;
  }
  return own as Partial<OAuthClientSpec>;
}
