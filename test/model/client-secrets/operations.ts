// What owners, other parties, networks and machines do in the model of client secrets.

import fc from 'fast-check';
import {
  CLIENT_LABEL,
  CLIENT_UID_LABEL,
  defaultSecretName,
  stagedKey,
} from '../../../src/admission/client-secrets/client-secret-manifest.ts';
import { verifierSecretName } from '../../../src/admission/client-secrets/client-verifier.ts';
import { fieldsOf } from '../../../src/admission/kinds/manifest.ts';
import { type KubernetesObject, OAUTH_CLIENTS, SECRETS } from '../../../src/kubernetes/objects/resources.ts';
import type { FaultyLink, Kind } from './faulty-link.ts';
import { KEYS, secretNameOf, TEAM } from './stored-secrets.ts';
import { World } from './world.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** One thing that happens, some time after the one before. Plain data: a shrunk history is to be read. */
export interface Operation {
  /** Milliseconds since the one before. */
  readonly after: number;
  readonly does: string;
  readonly act: (world: World, number: number) => void;
  /** How fast-check prints it. */
  readonly [fc.toStringMethod]: () => string;
}

/** What is run: a history of operations. */
export type History = readonly Operation[];

/** Lets the operations happen, one after the other. @returns what broke a promise, as World.run does */
export function run(seed: number, history: History, trace?: (line: string) => void): Promise<readonly string[]> {
  return World.run({ seed, trace }, async (world) => {
    for (const [index, { after, does, act }] of history.entries()) {
      await world.time.pass(after);
      trace?.(`${world.time.elapsed} ${does}`);
      act(world, index);
    }
  });
}

type Act = Operation['act'];

const AFTER = fc.oneof(
  { weight: 3, arbitrary: fc.constant(0) },
  { weight: 6, arbitrary: fc.integer({ min: 1, max: 60 }) },
  { weight: 4, arbitrary: fc.constantFrom(100, 300, SECOND) },
  { weight: 3, arbitrary: fc.constantFrom(3 * SECOND, 6 * SECOND, 20 * SECOND) },
  { weight: 1, arbitrary: fc.constant(70 * SECOND) },
);

const NAMES = ['web', 'api'] as const;
const client = fc.constantFrom('web', 'web', 'web', 'api');
const isLeader = fc.constantFrom(true, true, true, false);
const some = fc.integer({ min: 1, max: 4 });

interface Variant {
  readonly secretName: 'default' | 'alpha' | 'beta' | 'shared';
  readonly key: (typeof KEYS)[number];
  readonly grace: number;
  readonly deletionPolicy: 'Delete' | 'Retain';
}

function variant(secretName: fc.Arbitrary<Variant['secretName']>): fc.Arbitrary<Variant> {
  return fc.record({
    secretName,
    key: fc.constantFrom(KEYS[0], KEYS[0], KEYS[0], KEYS[1]),
    grace: fc.constantFrom(60, 3600, 86_400),
    deletionPolicy: fc.constantFrom('Delete' as const, 'Delete' as const, 'Delete' as const, 'Retain' as const),
  });
}

const OWN_NAMES = fc.constantFrom('default' as const, 'alpha' as const, 'beta' as const);
const ALL_NAMES = fc.constantFrom('default' as const, 'alpha' as const, 'shared' as const);

export function edit(name: string, { secretName, key, grace, deletionPolicy }: Variant): Act {
  const names = { default: undefined, alpha: `${name}-alpha`, beta: `${name}-beta`, shared: 'shared' };
  return (world) => {
    if (secretName === 'shared') world.ledger.disturbed();
    const present = world.stored.client(name);
    const isRenamed = present !== undefined && secretNameOf(present) !== (names[secretName] ?? defaultSecretName(name));
    if (isRenamed) world.ledger.newSecretIsDue(present.metadata.uid);
    const clientSecret = {
      ...(names[secretName] !== undefined && { secretName: names[secretName] }),
      ...(key !== KEYS[0] && { keys: { clientSecret: KEYS[1] } }),
      rotation: { gracePeriod: `${grace}s` },
      deletionPolicy,
    };
    world.applyClient(name, { auth: { clientSecret } });
  };
}

export function rotate(name: string, isCut: boolean): Act {
  return (world, number) => {
    const present = world.stored.client(name);
    if (present === undefined) return;
    const annotation = isCut ? 'grantry.dev/rotate-now' : 'grantry.dev/rotate-requested-at';
    world.ledger.newSecretIsDue(present.metadata.uid);
    const patch = { metadata: { annotations: { [annotation]: `request-${number}` } } };
    world.server.merge(OAUTH_CLIENTS, { namespace: TEAM, name }, patch, 'kubectl');
  };
}

export function remove(name: string): Act {
  return (world) => world.byOthers((server) => server.delete(OAUTH_CLIENTS, { namespace: TEAM, name }, 'kubectl'));
}

/** Another party takes a hand in the Secret of a client. */
function disturb(name: string, act: (world: World, secret: KubernetesObject, number: number) => void): Act {
  return (world, number) => {
    const owner = world.stored.client(name);
    const secret = owner && world.stored.secret(secretNameOf(owner));
    if (secret === undefined) return;
    world.ledger.disturbed();
    act(world, secret, number);
  };
}

function patched(patch: (secret: KubernetesObject, number: number) => Record<string, unknown>) {
  return (world: World, secret: KubernetesObject, number: number) => {
    world.server.merge(SECRETS, secret.metadata, patch(secret, number), 'kubectl');
  };
}

const tamper = patched((secret, number) => {
  const key = KEYS.find((each) => each in fieldsOf(secret.data)) ?? KEYS[0];
  return { data: dataOf(`another party's value, number ${number}, of 32 bytes`, key) };
});
/** Beside the client secret, where the next one is staged. */
const tamperStage = (world: World, secret: KubernetesObject, number: number) => {
  const value = Buffer.from(`staged by another party, number ${number}`).toString('base64url').slice(0, 43);
  world.ledger.staged(value);
  const data = Object.fromEntries(KEYS.map((key) => [stagedKey(key), Buffer.from(value).toString('base64')]));
  world.server.merge(SECRETS, secret.metadata, { data }, 'kubectl');
};
const removeStage = patched(() => ({ data: Object.fromEntries(KEYS.map((key) => [stagedKey(key), null])) }));
const unlabel = patched(() => ({ metadata: { labels: { [CLIENT_UID_LABEL]: null } } }));
/**
 * Known fault, which histories leave out: a Secret, of a client or of its verifiers, that is made and removed in one gap of a
 * watch is not missed, because the watch never knew of it, until its client or the leader changes.
 */
const removeSecret = (world: World, secret: KubernetesObject) => {
  if (world.isSeen(secret)) world.server.delete(SECRETS, secret.metadata, 'kubectl');
};

function dataOf(value: string, key: string = KEYS[0]): Readonly<Record<string, string>> {
  return { [key]: Buffer.from(value).toString('base64') };
}

/** A Secret is put back as it was some changes ago: into its place, or after it is gone. @param isOwned with its owners */
function restore(secretName: string, age: number, isOwned: boolean): Act {
  return (world) => {
    const backup = world.backups.get(secretName)?.at(-age);
    if (backup === undefined) return;
    world.ledger.disturbed();
    const { labels = {}, ownerReferences = [] } = backup.metadata;
    world.byOthers((server, manager) => {
      const metadata = { namespace: TEAM, name: secretName, labels, ...(isOwned && { ownerReferences }) };
      const object = { metadata, type: 'Opaque', data: backup.data };
      if (world.stored.secret(secretName) === undefined) server.create(SECRETS, object, manager);
      else server.apply(SECRETS, object, { manager });
    });
  };
}

/** A tenant makes a Secret of a name that a client has or may get. */
export function squat(secretName: string, labelledFor: string | undefined): Act {
  return (world, number) => {
    world.ledger.disturbed();
    const owner = labelledFor === undefined ? undefined : world.stored.client(labelledFor);
    const labels = owner && { [CLIENT_LABEL]: owner.metadata.name, [CLIENT_UID_LABEL]: owner.metadata.uid };
    const data = dataOf(`a tenant's own value, number ${number}, of 32 bytes`);
    world.byOthers((server, manager) => {
      const metadata = { namespace: TEAM, name: secretName, ...(labels && { labels }) };
      server.create(SECRETS, { metadata, type: 'Opaque', data }, manager);
    });
  };
}

export function vacate(secretName: string): Act {
  return (world) => {
    const present = world.stored.secret(secretName);
    if (present === undefined) return;
    world.ledger.disturbed();
    removeSecret(world, present);
  };
}

function loseVerifiers(name: string): Act {
  return (world) => {
    const uid = world.stored.client(name)?.metadata.uid;
    if (uid === undefined) return;
    const present = world.stored.verifierSecrets.find(({ metadata }) => metadata.name === verifierSecretName(uid));
    if (present === undefined) return;
    world.ledger.disturbed();
    removeSecret(world, present);
  };
}

/** Whose network it is. */
type Whose = 'leader' | 'other' | 'token server';

export function linkOf(world: World, whose: Whose): FaultyLink {
  return whose === 'token server' ? world.tokenServer.link : world.controller(whose === 'leader').link;
}

function gap(whose: Whose): Act {
  return (world) => {
    world.server.compact();
    linkOf(world, whose).breakWatches();
  };
}

export function operation(after: number, does: string, act: Act): Operation {
  return { after, does, act, [fc.toStringMethod]: () => `\n  +${after} ms ${does}` };
}

export type Made = readonly [does: string, act: Act];

function of(arbitrary: fc.Arbitrary<Made>): fc.Arbitrary<Operation> {
  return fc.tuple(AFTER, arbitrary).map(([after, [does, act]]) => operation(after, does, act));
}

function editing(names: fc.Arbitrary<Variant['secretName']>): fc.Arbitrary<Made> {
  return fc.tuple(client, variant(names)).map(([name, to]) => {
    return [`apply ${name} ${Object.values(to).join(' ')}`, edit(name, to)] as const;
  });
}

const held = fc.constantFrom(100, SECOND, 3 * SECOND, 3 * SECOND, 8 * SECOND, 25 * SECOND, MINUTE);
const parted = fc.constantFrom(SECOND, 5 * SECOND, 12 * SECOND, 20 * SECOND, 40 * SECOND);
const whose = fc.constantFrom<Whose>('leader', 'leader', 'leader', 'other', 'token server');
const written = fc.constantFrom<Kind>('verifiers', 'Secrets', 'Secrets', 'anything');
const watched = fc.constantFrom<Kind>('clients', 'verifiers', 'Secrets', 'anything');
/** After the next change of leader, in milliseconds. */
const late = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.constantFrom(100, 250, 290, 400, SECOND));

type Weighted = readonly [weight: number, made: fc.Arbitrary<Made>];

const BY_OWNERS: readonly Weighted[] = [
  [5, editing(OWN_NAMES)],
  [6, client.map((name) => [`rotate ${name}`, rotate(name, false)])],
  [3, client.map((name) => [`cut ${name}`, rotate(name, true)])],
  [2, client.map((name) => [`delete ${name}`, remove(name)])],
];

const BY_MACHINES: readonly Weighted[] = [
  [4, isLeader.map((which) => [`crash ${roleOf(which)}`, (world) => world.crash(which)])],
  [1, isLeader.map((which) => [`end ${roleOf(which)}`, (world) => world.end(which)])],
  [
    2,
    fc.tuple(isLeader, parted).map(([which, ms]) => {
      return [`freeze ${roleOf(which)} for ${ms} ms`, (world) => world.freeze(which, ms)];
    }),
  ],
  [
    3,
    fc.tuple(isLeader, parted, fc.boolean()).map(([which, ms, lost]) => {
      return [
        `part ${roleOf(which)} for ${ms} ms, ${lost ? 'requests are lost' : 'requests are late'}`,
        (world) => world.controller(which).link.part(ms, lost),
      ];
    }),
  ],
  [2, parted.map((ms) => [`lose renewals for ${ms} ms`, (world) => world.controller(true).link.loseRenewals(ms)])],
  [
    4,
    fc.tuple(isLeader, written, some, held).map(([which, kind, count, ms]) => {
      return [
        `hold ${count} writes of ${kind} of ${roleOf(which)} for ${ms} ms`,
        (world) => world.controller(which).link.holdWrites(kind, count, ms),
      ];
    }),
  ],
  [
    5,
    fc.tuple(written, fc.constantFrom(1, 1, 2), late).map(([kind, count, ms]) => {
      return [
        `hold ${count} writes of ${kind} until ${ms} ms after another leads`,
        (world) => {
          world.lateness = ms;
          world.controller(true).link.holdWrites(kind, count, undefined);
        },
      ];
    }),
  ],
  [
    2,
    fc.tuple(written, some, held).map(([kind, count, ms]) => {
      return [
        `hold ${count} answers to writes of ${kind} for ${ms} ms`,
        (world) => world.controller(true).link.holdAnswers(kind, count, ms),
      ];
    }),
  ],
  [
    2,
    fc.tuple(written, fc.constantFrom(1, 1, 2)).map(([kind, count]) => {
      return [
        `lose ${count} answers to writes of ${kind}`,
        (world) => world.controller(true).link.loseAnswers(kind, count),
      ];
    }),
  ],
  [
    6,
    fc.tuple(whose, watched, held).map(([which, kind, ms]) => {
      return [`hold frames of ${kind} to ${which} for ${ms} ms`, (world) => linkOf(world, which).holdFrames(kind, ms)];
    }),
  ],
  [2, whose.map((which) => [`compact, break watches of ${which}`, gap(which)])],
  [1, held.map((ms) => [`hold the garbage collector for ${ms} ms`, (world) => world.holdCollector(ms)])],
  [
    1,
    fc.constantFrom(20 * SECOND, 61 * SECOND, HOUR + MINUTE, 25 * HOUR).map((ms) => {
      return [`sleep ${ms} ms`, (world) => world.time.sleep(ms)];
    }),
  ],
];

const secretName = fc.constantFrom('web-oauth', 'web-oauth', 'web-alpha', 'shared', 'api-oauth');

const BY_OTHERS: readonly Weighted[] = [
  [2, editing(ALL_NAMES)],
  [2, client.map((name) => [`overwrite the Secret of ${name}`, disturb(name, tamper)])],
  [2, client.map((name) => [`remove the Secret of ${name}`, disturb(name, removeSecret)])],
  [2, client.map((name) => [`stage another secret in the Secret of ${name}`, disturb(name, tamperStage)])],
  [1, client.map((name) => [`remove what is staged in the Secret of ${name}`, disturb(name, removeStage)])],
  [1, client.map((name) => [`unlabel the Secret of ${name}`, disturb(name, unlabel)])],
  [
    4,
    fc.tuple(secretName, some, fc.constantFrom(false, false, true)).map(([name, age, isOwned]) => {
      return [
        `restore ${name} of ${age} changes ago ${isOwned ? 'with' : 'without'} owners`,
        restore(name, age, isOwned),
      ];
    }),
  ],
  [
    2,
    fc.tuple(secretName, fc.constantFrom(undefined, ...NAMES)).map(([name, owner]) => {
      return [`a tenant makes ${name}${owner ? ` with the labels of ${owner}` : ''}`, squat(name, owner)];
    }),
  ],
  [2, secretName.map((name) => [`remove ${name}`, vacate(name)])],
  [1, client.map((name) => [`lose the verifiers of ${name}`, loseVerifiers(name)])],
];

function roleOf(isLeader: boolean): string {
  return isLeader ? 'leader' : 'other';
}

function oneOf(...weighted: readonly Weighted[]): fc.Arbitrary<Operation> {
  return fc.oneof(...weighted.map(([weight, made]) => ({ weight, arbitrary: of(made) })));
}

/** What may follow a scene. */
export const NEXT = oneOf(...BY_OWNERS, ...BY_MACHINES);

const FIRST = of(editing(OWN_NAMES).filter(([does]) => does.startsWith('apply web')));

function history(operations: fc.Arbitrary<Operation>): fc.Arbitrary<History> {
  const rest = fc.array(operations, { minLength: 1, maxLength: 16, size: 'max' });
  return fc.tuple(FIRST, rest).map(([first, more]) => [first, ...more]);
}

/** Histories without and with other parties. */
export const HISTORY: fc.Arbitrary<History> = fc.oneof(
  history(oneOf(...BY_OWNERS, ...BY_MACHINES)),
  history(oneOf(...BY_OWNERS, ...BY_MACHINES, ...BY_OTHERS)),
);
