// What changes during a soak: the manifests of a signing key, of a client whose secret is rotated, of a client that is edited,
// and of one that exists every other time.

import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AUDIENCE, SCOPE } from '../load/load-client.ts';

/** The client whose secret rotates. */
export const ROTATING_ID = 'bench.rotating';
/** The secret is rotated, and clients are edited, so often. */
const EDIT_SECONDS = 20;
/** A new secret is used so long after it was written: the kubelet takes longer, and a server accepts it within a second. */
const SECRET_DELAY_SECONDS = 3;
/** Of one client 32 secrets work at a time, each for a day: no more are made. */
const MOST_SECRETS = 30;

interface Counts {
  readonly keys: number;
  readonly secrets: number;
  readonly edits: number;
}

interface Secret {
  readonly text: string;
  readonly readAt: number;
}

const manifests = ({ keys, secrets, edits }: Counts) => `
apiVersion: grantry.dev/v1alpha1
kind: SigningKey
metadata: { name: soak, annotations: { grantry.dev/rotate-requested-at: 'request-${keys}' } }
spec: { algorithm: ES256, rotation: { policy: Manual, retain: 24h } }
${client('rotating', `Rotating ${secrets}`, `request-${secrets}`)}
${client('edited', `Edited ${edits}`)}
${edits % 2 === 0 ? '' : client('recurring', `Recurring ${edits}`)}`;

function client(name: string, displayName: string, rotateAt?: string): string {
  const annotations = rotateAt === undefined ? {} : { 'grantry.dev/rotate-requested-at': rotateAt };
  return `---
apiVersion: grantry.dev/v1alpha1
kind: OAuthClient
metadata: { name: ${name}, namespace: bench, annotations: ${JSON.stringify(annotations)} }
spec:
  displayName: ${displayName}
  auth: { method: client_secret_basic }
  grantTypes: [client_credentials]
  scopes: [${SCOPE}]
  audiences: ['${AUDIENCE}']
`;
}

/** The changes of one folder. */
export class Changes {
  readonly #folder: string;
  readonly #keyRotationSeconds: number;
  /** The one in use, and the one that was read last. */
  #secrets: readonly [Secret, Secret] | readonly [] = [];
  #counts: Counts = { keys: 0, secrets: 0, edits: 0 };

  constructor(folder: string, { keyRotationSeconds }: { readonly keyRotationSeconds: number }) {
    this.#folder = folder;
    this.#keyRotationSeconds = keyRotationSeconds;
  }

  /** Writes the manifests as they are at first. */
  async begin(): Promise<void> {
    await this.#write();
  }

  /** Makes the changes that are due. @param seconds since the begin */
  async makeDue(seconds: number): Promise<void> {
    const { keys, secrets, edits } = this.#counts;
    const dueEdits = Math.floor(seconds / EDIT_SECONDS);
    const dueKeys = Math.floor(seconds / this.#keyRotationSeconds);
    if (dueEdits === edits && dueKeys === keys) return;
    const isSecretDue = dueEdits > edits && dueEdits % 3 === 1 && secrets < MOST_SECRETS;
    this.#counts = { keys: dueKeys, edits: dueEdits, secrets: secrets + (isSecretDue ? 1 : 0) };
    await this.#write();
  }

  /** The secret of the client whose secret rotates, at least {@link SECRET_DELAY_SECONDS} old, as a pod has it from a volume. */
  async readSecret(): Promise<string> {
    const now = performance.now();
    const [inUse, next] = this.#secrets;
    if (inUse !== undefined && next !== undefined && now - next.readAt < 1000 * SECRET_DELAY_SECONDS) return inUse.text;
    const file = join(this.#folder, `.grantry/secrets/${ROTATING_ID}.secret`);
    const read = { text: (await readFile(file, 'utf8')).trimEnd(), readAt: now };
    this.#secrets = [next ?? read, read];
    return this.#secrets[0].text;
  }

  summary(): string {
    const { keys, secrets, edits } = this.#counts;
    return `rotations: ${keys} of the key, ${secrets} of a secret; ${edits} edits`;
  }

  /** @param keys how many signed */
  faults(keys: number): readonly string[] {
    // The last rotation may be due as the run ends.
    return keys >= this.#counts.keys ? [] : [`${this.#counts.keys} rotations of the signing key: ${keys} keys signed`];
  }

  /** By a rename: no reader finds half a file. */
  async #write(): Promise<void> {
    const file = join(this.#folder, 'soak.yaml');
    await writeFile(`${file}.new`, manifests(this.#counts));
    await rename(`${file}.new`, file);
  }
}
