// The network between one process and the API server, in virtual time: every call and frame takes some milliseconds, and what
// a test asks for befalls them. A request that was sent arrives, however late, also when its sender is gone.

import { LEADER_CALL_MILLISECONDS } from '../../../src/controller/leadership/lease.ts';
import type { WatchFrame } from '../../../src/kubernetes/api/kubernetes-api.ts';
import { LEASES, OAUTH_CLIENTS, type Resource, SECRETS } from '../../../src/kubernetes/objects/resources.ts';
import { type Call, errorOf, type FrameStream, type Link } from '../api-server/memory-api.ts';
import { ApiRefusal } from '../api-server/memory-api-server.ts';
import type { VirtualTime } from '../virtual-time.ts';
import { INSTALL } from './install.ts';

/** A request on its way. */
export interface Sending {
  /** Of the process that sent it. */
  readonly sender: string;
  /** How often it had begun to lead. */
  readonly term: number;
  readonly call: Call;
  /** Epoch milliseconds. */
  readonly sentAt: number;
}

export interface FaultyLinkOptions {
  readonly sender: string;
  readonly time: VirtualTime;
  /** Chooses the delays. */
  readonly seed: number;
  readonly onSend: (sending: Sending) => void;
  /** What the API server does with a request that arrives. */
  readonly serve: <Answer>(sending: Sending, perform: () => Answer) => Answer;
}

const LONGEST_HOP = 5;
/** What ApiClient gives a list and the start of a watch. */
const READ_MILLISECONDS = 60_000;

/** What a write or a frame is about. */
export type Kind = 'clients' | 'verifiers' | 'Secrets' | 'anything';

/** What befalls a write. */
interface Fate {
  readonly kind: Kind;
  /** Milliseconds until it arrives; undefined: until another process leads. */
  readonly held: number | undefined;
  readonly answer: { readonly lost: boolean; readonly held: number };
}

const NO_FATE: Fate = { kind: 'anything', held: 0, answer: { lost: false, held: 0 } };

/** It stands for its process as the owner of timers. */
export class FaultyLink implements Link {
  readonly #options: FaultyLinkOptions;
  readonly #streams = new Set<FrameStream>();
  /** The frames of a stream that are on their way. */
  readonly #frames = new Map<FrameStream, WatchFrame[]>();
  /** When the last frame of a stream arrives. */
  readonly #lastFrame = new Map<FrameStream, number>();
  readonly #counts = new Map<string, number>();
  #fates: Fate[] = [];
  /** Requests that wait until another process leads. */
  #parked: (() => void)[] = [];
  #partition = { until: 0, lost: false };
  #renewalsLostUntil = 0;
  readonly #framesHeldUntil = new Map<Kind, number>();
  #isDown = false;
  /** How often its process has begun to lead. */
  term = 0;

  constructor(options: FaultyLinkOptions) {
    this.#options = options;
  }

  /** The process is killed: it sends and receives nothing any more. */
  cut(): void {
    this.#isDown = true;
  }

  /** Nothing gets through for a while. @param lost whether what is sent meanwhile is lost; else it arrives at the end */
  part(milliseconds: number, lost: boolean): void {
    this.#partition = { until: this.#now + milliseconds, lost };
    this.holdFrames('anything', milliseconds);
  }

  /** The lease cannot be renewed for a while, and all else goes on. */
  loseRenewals(milliseconds: number): void {
    this.#renewalsLostUntil = this.#now + milliseconds;
  }

  /** Frames arrive only after a while. */
  holdFrames(kind: Kind, milliseconds: number): void {
    const before = this.#framesHeldUntil.get(kind) ?? 0;
    this.#framesHeldUntil.set(kind, Math.max(before, this.#now + milliseconds));
  }

  /** Each of the next writes arrives so late. @param milliseconds undefined: some time after another process leads */
  holdWrites(kind: Kind, count: number, milliseconds: number | undefined): void {
    this.#doom(count, { ...NO_FATE, kind, held: milliseconds });
  }

  /** Each of the next writes is answered so late. */
  holdAnswers(kind: Kind, count: number, milliseconds: number): void {
    this.#doom(count, { kind, held: 0, answer: { lost: false, held: milliseconds } });
  }

  /** The next writes happen, and are not answered. */
  loseAnswers(kind: Kind, count: number): void {
    this.#doom(count, { kind, held: 0, answer: { lost: true, held: 0 } });
  }

  /** To be called when another process leads. @param milliseconds until what waits for that arrives */
  release(milliseconds: number): void {
    for (const arrive of this.#parked) this.#options.time.after(milliseconds, arrive);
    this.#parked = [];
  }

  /** Every watch ends by a broken connection. */
  breakWatches(): void {
    const broken = new ApiRefusal(0, 'ECONNRESET');
    for (const stream of this.#streams) stream.end(errorOf({ verb: 'watch', resource: stream.resource }, broken));
    this.#streams.clear();
  }

  /** Nothing befalls what is sent from now on. */
  heal(): void {
    this.#fates = [];
    this.release(0);
    this.#partition = { until: 0, lost: false };
    this.#renewalsLostUntil = 0;
    this.#framesHeldUntil.clear();
  }

  carry<Answer>(call: Call, perform: () => Answer): Promise<Answer> {
    const { time, sender, onSend, serve } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    if (this.#isDown) return promise;
    const sending = { sender, term: this.term, call, sentAt: this.#now };
    onSend(sending);
    const fate = this.#fateOf(call);
    const answerLater = (answer: () => void) => {
      if (fate.answer.lost || this.#isDown) return;
      const receive = () => {
        if (!this.#isDown && this.#now >= this.#partition.until) answer();
      };
      time.after(fate.answer.held + this.#hop(call), receive, this);
    };
    const arrive = () => {
      try {
        const answer = serve(sending, perform);
        answerLater(() => resolve(answer));
      } catch (error) {
        answerLater(() => reject(error));
      }
    };
    const parted = Math.max(0, this.#partition.until - this.#now);
    const isLost = (parted > 0 && this.#partition.lost) || (isRenewal(call) && this.#now < this.#renewalsLostUntil);
    if (fate.held === undefined) this.#parked.push(arrive);
    else if (!isLost) time.after(fate.held + this.#hop(call) + parted, arrive);
    const limit = ['list', 'watch'].includes(call.verb) ? READ_MILLISECONDS : LEADER_CALL_MILLISECONDS;
    const timer = setTimeout(() => reject(new ApiRefusal(0, 'Timeout')), limit);
    return promise.finally(() => clearTimeout(timer));
  }

  open(stream: FrameStream): void {
    this.#streams.add(stream);
  }

  deliver(stream: FrameStream, frame: WatchFrame): void {
    const { time } = this.#options;
    const kinds: readonly Kind[] = ['anything', kindOf(stream.resource, stream.namespace)];
    const held = kinds.map((kind) => this.#framesHeldUntil.get(kind) ?? 0);
    const soon = this.#now + this.#hop({ verb: 'watch', resource: stream.resource });
    const at = Math.max(this.#lastFrame.get(stream) ?? 0, soon, ...held);
    this.#lastFrame.set(stream, at);
    const frames = this.#frames.get(stream) ?? [];
    this.#frames.set(stream, frames);
    frames.push(frame);
    // The oldest one: two timers of one moment may fire in any order, and a connection keeps it.
    const receive = () => {
      const next = frames.shift();
      if (!this.#isDown && next !== undefined) stream.push(next);
    };
    time.after(at - this.#now, receive, this);
  }

  /** What befalls a call: what the first fate says that is about its kind. */
  #fateOf(call: Call): Fate {
    if (!isWrite(call)) return NO_FATE;
    const kind = kindOf(call.resource, call.namespace);
    const index = this.#fates.findIndex((fate) => fate.kind === 'anything' || fate.kind === kind);
    return index === -1 ? NO_FATE : (this.#fates.splice(index, 1)[0] ?? NO_FATE);
  }

  #doom(count: number, fate: Fate): void {
    for (let each = 0; each < count; each += 1) this.#fates.push(fate);
  }

  /** Depends on the call and on how many there were of it: what befalls other calls does not change it. */
  #hop({ verb, resource, name = '' }: Call): number {
    const what = `${this.#options.sender} ${verb} ${resource.plural} ${name}`;
    const count = (this.#counts.get(what) ?? 0) + 1;
    this.#counts.set(what, count);
    return 1 + (hashOf(`${this.#options.seed} ${what} ${count}`) % LONGEST_HOP);
  }

  get #now(): number {
    return this.#options.time.now();
  }
}

function isRenewal({ verb, resource }: Call): boolean {
  return verb === 'update' && resource === LEASES;
}

function kindOf(resource: Resource, namespace: string | undefined): Kind {
  if (resource === OAUTH_CLIENTS) return 'clients';
  if (resource !== SECRETS) return 'anything';
  return namespace === INSTALL.releaseNamespace ? 'verifiers' : 'Secrets';
}

/** Whether a call writes what a leader alone may write. */
export function isWrite({ verb, resource }: Call): boolean {
  return ['create', 'update', 'patch', 'delete'].includes(verb) && resource !== LEASES;
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return (hash ^ (hash >>> 15)) >>> 0;
}
