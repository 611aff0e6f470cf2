// The lists of users in Secrets of the release namespace, as the watch has them: reads each that is new, says what is wrong
// with it, and merges them. Of one with a fault only the denials apply.

import type { Logger } from 'pino';
import { readSecretValue } from '../../admission/references/references.ts';
import { USERS_SECRET } from '../../admission/references/secret-parts.ts';
import type { UsersReport } from '../../http/admin/controller-endpoints.ts';
import type { KubernetesObject } from '../../kubernetes/objects/resources.ts';
import { UsersFileError } from '../../login/local/local-users.ts';
import { type LeftOut, type UserLists, WHY_LEFT_OUT } from '../../login/local/user-lists.ts';
import { placeOfFault, readList } from './list-reading.ts';

export interface UsersSecretsOptions {
  /** The Secrets of the type for users, as they are now. */
  readonly secrets: () => Iterable<KubernetesObject>;
  readonly lists: UserLists;
  readonly log: Pick<Logger, 'info' | 'error'>;
}

/** A Secret whose text was read. */
interface ReadSecret {
  readonly name: string;
  /** Undefined where there is none under the key. */
  readonly text: string | undefined;
  readonly fault: string | undefined;
}

export class UsersSecrets {
  readonly #options: UsersSecretsOptions;
  /** By uid. */
  readonly #read = new Map<string, ReadSecret>();
  #running: Promise<void> = Promise.resolve();
  #isPending = false;

  constructor(options: UsersSecretsOptions) {
    this.#options = options;
  }

  /** Serves the Secrets as they are now. To be called before people sign in, and at each change. Never throws. */
  refresh(): Promise<void> {
    if (!this.#isPending) {
      this.#isPending = true;
      this.#running = this.#running.then(() => this.#refresh());
    }
    return this.#running;
  }

  /** By uid, the Secrets that do not count, or not as a whole. */
  get faults(): ReadonlyMap<string, UsersReport> {
    const { leftOut } = this.#options.lists;
    const faults = new Map<string, UsersReport>();
    for (const [uid, { name, fault }] of this.#read) {
      const left = leftOut.get(uid);
      const message = fault ?? (left && leftOutLine(left));
      if (message !== undefined) faults.set(uid, { name, message });
    }
    return faults;
  }

  /** The first of the {@link faults} in one line; undefined without one. */
  get fault(): string | undefined {
    const [first, ...others] = this.faults.values();
    if (first === undefined) return undefined;
    const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
    return `the Secret ${first.name}: ${first.message}${more}`;
  }

  async #refresh(): Promise<void> {
    this.#isPending = false;
    const { secrets, lists, log } = this.#options;
    const gone = new Set(this.#read.keys());
    let isChanged = false;
    for (const secret of secrets()) {
      const { uid, name } = secret.metadata;
      gone.delete(uid);
      try {
        isChanged = (await this.#readOne(secret)) || isChanged;
      } catch (error) {
        log.error({ secret: name, err: error }, 'a Secret with users could not be read');
      }
    }
    for (const uid of gone) {
      this.#read.delete(uid);
      lists.delete(uid);
    }
    if (isChanged || gone.size > 0) lists.merge();
  }

  /** @returns whether its text is another one */
  async #readOne(secret: KubernetesObject): Promise<boolean> {
    const { lists, log } = this.#options;
    const { uid, name, creationTimestamp } = secret.metadata;
    const value = readSecretValue(secret, USERS_SECRET.key, true);
    const text = value.outcome === 'found' ? value.value : undefined;
    const before = this.#read.get(uid);
    if (before !== undefined && before.text === text) return false;
    const reading = text === undefined ? NO_TEXT : await readList(text);
    lists.put(uid, { createdAt: Date.parse(creationTimestamp ?? '') || 0, name }, reading);
    const isFaulty = reading instanceof UsersFileError;
    const fault = isFaulty ? faultLine(reading) : undefined;
    this.#read.set(uid, { name, text, fault });
    if (isFaulty) log.error({ secret: name }, `${fault}: ${reading.message}`);
    else log.info({ secret: name }, before === undefined ? 'the users were read' : 'the users were read again');
    return true;
  }
}

const NO_TEXT = new UsersFileError(`there is no text under ${USERS_SECRET.key}`);

function faultLine(reading: UsersFileError): string {
  const what = reading === NO_TEXT ? reading.message : `the list has a fault at ${placeOfFault(reading)}`;
  return `${what}; only its denials apply`;
}

function leftOutLine({ index, reason }: LeftOut): string {
  return `users[${index}] does not count, nor others like it: ${WHY_LEFT_OUT[reason]}`;
}
