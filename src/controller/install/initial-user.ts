// The first user of an install: where the release namespace has no Secret with users, the leader creates one with a random
// password. It is the administrator's from then on: no reconcile changes or deletes it. The deletion of another users Secret
// is no reason to create it again, since that Secret may only be replaced.

import type { Logger } from 'pino';
import { USERS_SECRET } from '../../admission/references/secret-parts.ts';
import { type KubernetesApi, KubernetesError } from '../../kubernetes/api/kubernetes-api.ts';
import { USERS_SECRETS_SELECTOR } from '../../kubernetes/objects/release-parts.ts';
import { SECRETS } from '../../kubernetes/objects/resources.ts';
import type { SharedReflector } from '../../kubernetes/watch/shared-reflector.ts';
import type { Random } from '../../oauth/ports/ports.ts';
import type { LeaderApi } from '../leadership/leader-api.ts';
import { KindController } from '../reconciling/kind-controller.ts';
import type { ReconcileMetrics } from '../reconciling/work-queue.ts';

export interface InitialUserOptions {
  /** As a username of `users.yaml` may be. */
  readonly username: string;
  readonly api: LeaderApi;
  /** Lists without a lease, as the watches do. */
  readonly reader: Pick<KubernetesApi, 'list'>;
  readonly sources: {
    /** The Secrets of the release namespace of the type for users; listed once. */
    readonly usersSecrets: Pick<SharedReflector, 'objects' | 'listen'>;
  };
  readonly releaseNamespace: string;
  /** To a hash that `users.yaml` accepts. */
  readonly hashPassword: (password: string) => Promise<string>;
  readonly random: Random;
  readonly log: Pick<Logger, 'info' | 'error'>;
  readonly metrics: ReconcileMetrics;
}

const NAME = 'grantry-initial-user';

/** No letter or digit that looks like another one, and 5 bits for each. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const PASSWORD = { groups: 6, groupLength: 5 };

export class InitialUser extends KindController {
  readonly #options: InitialUserOptions;

  constructor(options: InitialUserOptions) {
    super({ kind: 'initial user', log: options.log, metrics: options.metrics });
    this.#options = options;
  }

  protected listen() {
    const end = this.#options.sources.usersSecrets.listen(({ type, object }) => {
      if (type === 'delete' && object.metadata.name === NAME) this.queue.add(NAME);
    });
    return [end];
  }

  protected begin(): void {
    this.queue.add(NAME);
  }

  protected async reconcile(): Promise<undefined> {
    if (await this.#isProvided()) return undefined;
    const { api, releaseNamespace: namespace, username, hashPassword, random, log } = this.#options;
    const password = newPassword(random);
    const users = usersFile(username, await hashPassword(password));
    try {
      await api.create(SECRETS, {
        metadata: { name: NAME, namespace },
        type: USERS_SECRET.type,
        data: { [USERS_SECRET.key]: base64(users), password: base64(password) },
      });
      log.info({ secret: NAME }, 'the first user was created');
    } catch (error) {
      if (!(error instanceof KubernetesError && error.reason === 'AlreadyExists')) throw error;
      const present = await api.get(SECRETS, { namespace, name: NAME });
      // Deleted meanwhile: retry.
      if (present === undefined) throw error;
      if (present.type !== USERS_SECRET.type) {
        throw new Error(`the Secret ${NAME} is not of type ${USERS_SECRET.type}, so there is no first user; remove it`);
      }
    }
    return undefined;
  }

  /** Whether there is a users Secret, which the cache may not have yet. */
  async #isProvided(): Promise<boolean> {
    const { reader, sources, releaseNamespace: namespace } = this.#options;
    const [cached] = sources.usersSecrets.objects();
    if (cached !== undefined) return true;
    const selection = { namespace, fieldSelector: USERS_SECRETS_SELECTOR, metadataOnly: true };
    return (await reader.list(SECRETS, { ...selection, limit: 1 })).items.length > 0;
  }
}

/** Of 150 random bits, in groups that people can read and type. */
function newPassword(random: Random): string {
  const { groups, groupLength } = PASSWORD;
  const group = () => Array.from(random.bytes(groupLength), (byte) => ALPHABET[byte % ALPHABET.length]).join('');
  return Array.from({ length: groups }, group).join('-');
}

/**
 * A `users.yaml` with one user. Of a name only the letters that mean nothing in YAML stand for themselves, because the
 * parser refuses some plain texts for what they resemble.
 */
function usersFile(username: string, passwordHash: string): string {
  const escaped = username.replace(
    /[^\w.@+\u0080-\u{10ffff}-]/gu,
    (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );
  return `- username: "${escaped}"\n  passwordHash: "${passwordHash}"\n`;
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
