// What may never happen, whatever the order: the ledger sees each request as it is sent and each change as it is stored, and
// writes down what breaks a promise.
//
// - Nothing is written without the lease.
// - A Secret of another owner is never written or removed, nor one whose value is accepted removed. One that garbage collection
//   removes with an earlier client of the name is never written.
// - There is one value for each rotation, a leader makes one secret for it at most, and no other party makes it.
// - What stands under the key of the owner's Secret is accepted, by each replica before it can be read where it replaces
//   another value, and until its grace is over or it is cut. This holds at each moment as long as no other party disturbs a
//   Secret. What another party did is repaired in the end: converged-state.ts.

import { readVerifierSecret } from '../../../src/admission/client-secrets/client-verifier.ts';
import { fieldsOf } from '../../../src/admission/kinds/manifest.ts';
import { uidOfVerifierSecret } from '../../../src/controller/client-secrets/verifier-secrets.ts';
import { FIELD_MANAGER } from '../../../src/kubernetes/api/kubernetes-api.ts';
import { type KubernetesObject, LEASES, OAUTH_CLIENTS, SECRETS } from '../../../src/kubernetes/objects/resources.ts';
import { secretVerifier } from '../../../src/oauth/registry/client-secret.ts';
import type { MemoryApiServer, StoredChange } from '../api-server/memory-api-server.ts';
import type { VirtualTime } from '../virtual-time.ts';
import { isWrite, type Sending } from './faulty-link.ts';
import { INSTALL, LEASE } from './install.ts';
import { labelledName, labelledUid, StoredSecrets, secretNameOf, settingsOf, TEAM, valueIn } from './stored-secrets.ts';
import type { TokenServer } from './token-server.ts';

/** A value that a controller put into a client's Secret. Times are epoch milliseconds. */
interface Published {
  readonly value: string;
  /** When the write was sent: what was asked for later could not count. */
  readonly sentAt: number;
  /** Whether its writer did not lead any more when it was stored. */
  readonly isLate: boolean;
  replacedAt: number | undefined;
}

/** What is known of one client, by its uid. */
interface Account {
  readonly published: Published[];
  /** The values that controllers made for it. */
  made: number;
  /** By their verifiers, the leader that made each secret, and its term. */
  readonly stored: Map<string, string>;
  /** What asks for a new value, the first one included. */
  causes: number;
  /** The last cut that a controller took up: what was sent before is not accepted any more. */
  cut: { readonly request: string | undefined; readonly at: number };
  /** The shortest grace that it ever had, in milliseconds. */
  grace: number;
}

/** The time that a write may take, from its plan until it is stored. */
const TOLERANCE = 10_000;

export class Ledger {
  readonly faults: string[] = [];
  readonly #server: MemoryApiServer;
  readonly #stored: StoredSecrets;
  readonly #time: VirtualTime;
  readonly #tokenServer: () => TokenServer;
  readonly #accounts = new Map<string, Account>();
  /** Every value that was ever in a Secret. */
  readonly #values = new Set<string>();
  /** The uids of the Secrets whose value a controller wrote last. */
  readonly #writtenByUs = new Set<string>();
  /** The uids of the Secrets that a controller ever wrote. */
  readonly #touched = new Set<string>();
  /** The uids of the Secrets that were created when their client named another one, and did not accept their value. */
  readonly #tooLate = new Set<string>();
  /** The term of each sender's last request. */
  readonly #terms = new Map<string, number>();
  /** What other parties staged. */
  readonly #staged = new Set<string>();
  #disturbances = 0;
  /** When a controller last changed a Secret. */
  lastWrite = 0;

  constructor({
    server,
    time,
    tokenServer,
  }: {
    readonly server: MemoryApiServer;
    readonly time: VirtualTime;
    readonly tokenServer: () => TokenServer;
  }) {
    this.#server = server;
    this.#stored = new StoredSecrets(server);
    this.#time = time;
    this.#tokenServer = tokenServer;
  }

  /** To be called where another party takes a hand in a Secret: its owner may need a new value for it. */
  disturbed(): void {
    this.#disturbances += 1;
  }

  /** To be called where another party puts a text where the next secret is staged. */
  staged(text: string): void {
    this.#staged.add(text);
  }

  get isCalm(): boolean {
    return this.#disturbances === 0;
  }

  /** To be called when an owner asks for a new secret, or for one under another name. */
  newSecretIsDue(uid: string): void {
    this.#account(uid).causes += 1;
  }

  /** Whether a controller ever wrote this Secret. */
  wrote({ metadata }: KubernetesObject): boolean {
    return this.#touched.has(metadata.uid);
  }

  /** Whether a Secret was created when its client named another one, and did not accept its value any more. */
  cameTooLate({ metadata }: KubernetesObject): boolean {
    return this.#tooLate.has(metadata.uid);
  }

  /** When a controller last took up a cut of a client. */
  cutAt(uid: string): number {
    return this.#account(uid).cut.at;
  }

  sent({ sender, term, call }: Sending): void {
    if (!isWrite(call)) return;
    this.#terms.set(sender, term);
    const leader = this.#leader;
    if (leader !== sender) this.#fault(`${sender} sends a ${call.verb} while ${leader} holds the lease`);
  }

  /** Whether a request is of the one that leads now, and not of an earlier term. */
  #isOfLeader({ sender, term }: Sending): boolean {
    return sender === this.#leader && term === this.#terms.get(sender);
  }

  /** The identity that holds the lease. */
  get #leader(): unknown {
    const lease = this.#server.get(LEASES, { namespace: INSTALL.releaseNamespace, name: LEASE });
    return fieldsOf(lease?.spec).holderIdentity;
  }

  /** @param sending undefined: the change of a test or of another party */
  changed(change: StoredChange, sending: Sending | undefined): void {
    const { resource, object, manager } = change;
    if (resource === OAUTH_CLIENTS) {
      const { gracePeriod } = fieldsOf(settingsOf(object).rotation);
      const account = this.#account(object.metadata.uid);
      account.grace = Math.min(account.grace, Number.parseInt(String(gracePeriod), 10) * 1000);
    }
    if (resource !== SECRETS) return;
    const isOurs = manager === FIELD_MANAGER;
    if (isOurs) this.lastWrite = this.#time.now();
    if (object.metadata.namespace === TEAM) {
      if (isOurs) this.#checkOwner(change);
      if (!change.isDeletion) this.#recordLate(change);
      if (!change.isDeletion) this.#recordValue(change, sending);
      if (isOurs) this.#touched.add(object.metadata.uid);
    } else if (!change.isDeletion) this.#recordVerifiers(change, sending);
    if (this.isCalm && isOurs) this.#checkAccepted();
  }

  #recordVerifiers({ object }: StoredChange, sending: Sending | undefined): void {
    const uid = uidOfVerifierSecret(object) ?? '';
    const account = this.#account(uid);
    const request = object.metadata.annotations?.['grantry.dev/handled-rotate-now'];
    if (request !== account.cut.request) account.cut = { request, at: this.#time.now() };
    if (sending === undefined) return;
    const leader = `${sending.sender} in term ${sending.term}`;
    const { verifiers = [] } = readVerifierSecret(object) ?? {};
    const newest = Buffer.from(verifiers[0]?.verifier ?? '').toString('hex');
    const known = [...this.#values].map((value) => Buffer.from(secretVerifier(uid, value)).toString('hex'));
    if (!known.includes(newest) && !account.stored.has(newest)) account.stored.set(newest, leader);
    // A leader cannot know a secret that another one stored and did not write.
    const count = [...account.stored.values()].filter((maker) => maker === leader).length;
    if (this.#stored.clientOf(uid) === undefined || count <= account.causes + this.#disturbances) return;
    this.#fault(`${leader} makes ${count} secrets of client ${uid}, which was asked for ${account.causes}`);
  }

  /** Whether the owner had this value cut, or asks for that. */
  #isCut(client: KubernetesObject, { sentAt }: Published): boolean {
    const { cut } = this.#account(client.metadata.uid);
    return sentAt <= cut.at || client.metadata.annotations?.['grantry.dev/rotate-now'] !== cut.request;
  }

  #checkOwner({ before, object, isDeletion, key }: StoredChange): void {
    if (before === undefined) return;
    const [uid, name] = [labelledUid(before), labelledName(before)];
    const owners = (before.metadata.ownerReferences ?? []).filter((owner) => owner.uid !== labelledUid(object));
    if (isDeletion) {
      const isRemovable = this.wrote(before) || this.#stored.isOrphaned(before);
      if (uid === undefined || !isRemovable) this.#fault(`${key}, of another owner, is removed`);
      const isInGrace = this.isCalm && this.#stored.accepts(uid ?? '', valueIn(before) ?? '', this.#time.now());
      if (isInGrace && this.#stored.clientOf(uid) !== undefined) this.#fault(`${key} is removed in its grace`);
      return;
    }
    const isOwn = uid !== undefined && uid === labelledUid(object);
    const isOrphan = uid !== undefined && name === labelledName(object) && this.#stored.clientOf(uid) === undefined;
    if (!isOwn && !isOrphan) this.#fault(`${key}, of another owner, is written`);
    if (!isOwn && owners.length > 0) this.#fault(`${key}, which is to go with its owner, is taken over`);
  }

  #recordValue({ before, object, key, manager }: StoredChange, sending: Sending | undefined): void {
    const value = valueIn(object);
    if (value === undefined || value === (before && valueIn(before))) return;
    const uid = labelledUid(object);
    const client = this.#stored.clientOf(uid);
    const isFormer = client !== undefined && secretNameOf(client) !== object.metadata.name;
    const isNew = !this.#values.has(value);
    this.#values.add(value);
    if (manager !== FIELD_MANAGER || uid === undefined) {
      this.#writtenByUs.delete(object.metadata.uid);
      return;
    }
    this.#writtenByUs.add(object.metadata.uid);
    if (this.#staged.has(value)) this.#fault(`${key} has the value that another party staged`);
    const account = this.#account(uid);
    const current = account.published.at(-1);
    const now = this.#time.now();
    // For its writer it is published, and the grace of the one before begins.
    if (isFormer && current !== undefined && current.value !== value) current.replacedAt ??= now;
    if (isFormer) return;
    if (isNew) account.made += 1;
    // A former leader's write. In a rotation the next leader has the same secret; a first one, and one after a cut, it
    // replaces by its own, whose grace began when that was made.
    const isLate = isNew && sending !== undefined && !this.#isOfLeader(sending);
    if (isLate) account.causes += 1;
    // The Secret of a deleted client is collected, and may be made again until the controller knows of the deletion.
    if (client !== undefined && account.made > account.causes + this.#disturbances) {
      this.#fault(`${key} has value ${account.made} of its client, which was asked for ${account.causes}`);
    }
    if (current?.value === value) return;
    const published = { value, sentAt: sending?.sentAt ?? now, isLate, replacedAt: undefined };
    const replaced = account.published.find((each) => each.value === (before && valueIn(before)));
    const isRotated =
      replaced !== undefined && !replaced.isLate && client !== undefined && !this.#isCut(client, replaced);
    if (isRotated && this.isCalm) this.#checkServed(uid, replaced, value);
    if (current !== undefined) current.replacedAt ??= now;
    account.published.push(published);
  }

  /** Known fault: what arrives under a name that the client does not name any more, after the grace or a cut, stays there. */
  #recordLate({ before, object, manager }: StoredChange): void {
    const uid = labelledUid(object) ?? '';
    const client = this.#stored.clientOf(uid);
    if (manager !== FIELD_MANAGER || client === undefined || before !== undefined) return;
    const isFormer = secretNameOf(client) !== object.metadata.name;
    const isAccepted = this.#stored.accepts(uid, valueIn(object) ?? '', this.#time.now());
    if (isFormer && !isAccepted) this.#tooLate.add(object.metadata.uid);
  }

  /** Where replicas accepted the value before, they accept the one that replaces it. */
  #checkServed(uid: string, replaced: Published, value: string): void {
    const server = this.#tokenServer();
    if (server.accepts(uid, replaced.value) && !server.accepts(uid, value)) {
      this.#fault(`the value of client ${uid} can be read before the replica accepts it`);
    }
  }

  #checkAccepted(): void {
    const now = this.#time.now();
    for (const client of this.#stored.clients) {
      const { uid } = client.metadata;
      const { published, grace } = this.#account(uid);
      const secret = this.#stored.secret(secretNameOf(client));
      const present = secret && labelledUid(secret) === uid ? valueIn(secret) : undefined;
      for (const each of published) {
        const { value, replacedAt, isLate } = each;
        // A former Secret that the client names again has a secret in its grace, until that is replaced.
        const isReplaced = replacedAt !== undefined;
        const isOurs = secret !== undefined && this.#writtenByUs.has(secret.metadata.uid);
        const isInForce = value === present && isOurs && !isReplaced;
        const inGrace = isReplaced && !isLate && now < replacedAt + grace - TOLERANCE;
        if ((!isInForce && !inGrace) || this.#isCut(client, each)) continue;
        if (this.#stored.accepts(uid, value, now)) continue;
        this.#fault(`a value of client ${uid} is not accepted ${isInForce ? 'though it is in force' : 'in its grace'}`);
      }
    }
  }

  #account(uid: string): Account {
    const account = this.#accounts.get(uid) ?? {
      published: [],
      made: 0,
      stored: new Map(),
      causes: 1,
      cut: { request: undefined, at: Number.NEGATIVE_INFINITY },
      grace: Number.POSITIVE_INFINITY,
    };
    this.#accounts.set(uid, account);
    return account;
  }

  #fault(text: string): void {
    this.faults.push(text);
  }
}
