import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Candidate, type ClientClaim, ClientUniqueness } from '../../../src/admission/clients/client-uniqueness.ts';

const KEYS = ['a', 'b', 'c', 'd', 'e', 'f'];

/** Few values, so that claims meet; no two clients are of one age. */
const claim = (key: string) =>
  fc.record<ClientClaim>({
    namespace: fc.constantFrom('team', 'other'),
    createdAt: fc.constant(KEYS.indexOf(key) % 2 === 0 ? KEYS.indexOf(key) : 100 - KEYS.indexOf(key)),
    uid: fc.option(fc.constantFrom('uid-1', 'uid-2', `uid-${key}`), { nil: undefined }),
    clientId: fc.option(fc.constantFrom('web', 'app', `own-${key}`), { nil: undefined }),
    derived: fc.boolean(),
    secret: fc.option(fc.constantFrom('team/web', `team/${key}`), { nil: undefined }),
    isAccepted: fc.boolean(),
    maxClientsPerNamespace: fc.constantFrom(0, 1, 2, 200),
  });

const change = fc
  .constantFrom(...KEYS)
  .chain((key) => fc.record({ key: fc.constant(key), claim: fc.option(claim(key), { nil: undefined }) }));

class Named<Key> extends Candidate {
  readonly key: Key;

  constructor(key: Key) {
    super();
    this.key = key;
  }
}

/** Claims by names. */
class NamedClaims<Key> {
  readonly #claims = new ClientUniqueness<Named<Key>>();
  readonly #named = new Map<Key, Named<Key>>();

  put(key: Key, claim: ClientClaim): void {
    this.#claims.put(this.#of(key), claim);
  }

  delete(key: Key): void {
    this.#claims.delete(this.#of(key));
  }

  recompute(): readonly Key[] {
    return this.#claims.recompute().map(({ key }) => key);
  }

  faultsOf(key: Key) {
    return this.#claims.faultsOf(this.#of(key));
  }

  #of(key: Key): Named<Key> {
    const named = this.#named.get(key) ?? new Named(key);
    this.#named.set(key, named);
    return named;
  }
}

function faultsIn(claims: NamedClaims<string>): Readonly<Record<string, readonly string[]>> {
  return Object.fromEntries(KEYS.map((key) => [key, claims.faultsOf(key).map(({ reason }) => reason)]));
}

describe('the claims of all clients', () => {
  it('have the same faults whether they are recomputed change by change or all at once', () => {
    fc.assert(
      fc.property(fc.array(fc.array(change, { maxLength: 4 }), { maxLength: 12 }), (rounds) => {
        const followed = new NamedClaims<string>();
        const present = new Map<string, ClientClaim>();
        for (const changes of rounds) {
          const before = faultsIn(followed);
          for (const { key, claim } of changes) {
            if (claim === undefined) {
              followed.delete(key);
              present.delete(key);
            } else {
              followed.put(key, claim);
              present.set(key, claim);
            }
          }
          const changed = new Set([...followed.recompute(), ...changes.map(({ key }) => key)]);
          const atOnce = new NamedClaims<string>();
          for (const [key, claim] of present) atOnce.put(key, claim);
          atOnce.recompute();
          const after = faultsIn(followed);
          expect(after).toEqual(faultsIn(atOnce));
          for (const key of KEYS) if (!changed.has(key)) expect(after[key]).toEqual(before[key]);
        }
      }),
      { numRuns: 500 },
    );
  });

  const web: ClientClaim = {
    namespace: 'team',
    createdAt: 1,
    uid: 'uid-1',
    clientId: 'web',
    derived: false,
    secret: undefined,
    isAccepted: true,
    maxClientsPerNamespace: 1,
  };

  /** The claimants of one id in the order of their creation; an id is derived for one object only. */
  const claimants = fc
    .record({ ages: fc.uniqueArray(fc.nat(50), { minLength: 2, maxLength: 6 }), derivedAt: fc.nat(8) })
    .map(({ ages, derivedAt }) =>
      ages
        .sort((a, b) => a - b)
        .map((createdAt, index) => ({
          ...web,
          createdAt,
          uid: `uid-${50 - createdAt}`,
          clientId: 'acme.app',
          derived: index === derivedAt,
          maxClientsPerNamespace: 200,
        })),
    );
  const holderOf = (claims: NamedClaims<string>, uids: readonly string[]) =>
    uids.filter((uid) => claims.faultsOf(uid).length === 0);

  it('an id that is held, and objects created later → it stays, but for one that a policy lists it for', () => {
    fc.assert(
      fc.property(claimants, (inOrder) => {
        const claims = new NamedClaims<string>();
        const uids: string[] = [];
        let holder: ClientClaim | undefined;
        for (const claim of inOrder) {
          claims.put(claim.uid, claim);
          uids.push(claim.uid);
          claims.recompute();
          // An id with a dot that is not the derived one was listed literally by an administrator.
          if (holder === undefined || (holder.derived && !claim.derived)) holder = claim;
          expect(holderOf(claims, uids)).toEqual([holder.uid]);
        }
      }),
    );
  });

  it('an explicit and a derived claim of one id → the explicit one has it, whatever the creationTimestamps', () => {
    fc.assert(
      fc.property(claimants, fc.infiniteStream(fc.nat(50)), (inOrder, ages) => {
        const claims = new NamedClaims<string>();
        for (const claim of inOrder) claims.put(claim.uid, { ...claim, createdAt: ages.next().value ?? 0 });
        claims.recompute();
        const holders = inOrder.filter(({ uid }) => claims.faultsOf(uid).length === 0);
        expect(holders.map(({ derived }) => derived)).toEqual([false]);
      }),
    );
  });

  it('give an id and its share of the limit to the next ranked when its holder goes', () => {
    const claims = new NamedClaims<string>();
    claims.put('older', web);
    claims.put('younger', { ...web, uid: 'uid-2', createdAt: 2 });
    claims.recompute();
    expect(claims.faultsOf('younger').map(({ reason }) => reason)).toEqual(['ClientIdConflict']);
    claims.delete('older');
    expect(claims.recompute()).toEqual(['younger']);
    expect(claims.faultsOf('younger')).toEqual([]);
  });

  it('name only the clients that a change affects', () => {
    const claims = new NamedClaims<string>();
    claims.put('one', web);
    claims.put('other', { ...web, namespace: 'other', uid: 'uid-2', clientId: 'other' });
    claims.recompute();
    claims.put('third', { ...web, uid: 'uid-3', clientId: 'third', createdAt: 0 });
    expect(claims.recompute()).toEqual(['one']);
    expect(claims.faultsOf('one').map(({ reason }) => reason)).toEqual(['ClientLimitExceeded']);
  });

  it('cost little in a namespace that is crowded', () => {
    let comparisons = 0;
    const crowded = (index: number, rest: Partial<ClientClaim> = {}): ClientClaim => ({
      ...web,
      uid: `uid-${index}`,
      clientId: `id-${index}`,
      maxClientsPerNamespace: 20,
      ...rest,
      // Every comparison of two clients reads their ages.
      get createdAt() {
        comparisons++;
        return index;
      },
    });
    const claims = new NamedClaims<number>();
    for (let index = 0; index < 5000; index++) claims.put(index, crowded(index));
    claims.recompute();
    const cost = (change: () => void) => {
      comparisons = 0;
      change();
      const changed = claims.recompute();
      return { comparisons, changed };
    };
    // Put once more, unchanged.
    expect(cost(() => claims.put(3000, crowded(3000)))).toEqual({ comparisons: 2, changed: [] });
    const changes = [
      cost(() => claims.delete(10)),
      cost(() => claims.put(10, crowded(10))),
      cost(() => claims.put(4000, crowded(4000, { isAccepted: false }))),
      cost(() => claims.put(4000, crowded(4000, { clientId: 'id-0' }))),
    ];
    expect(changes.map(({ changed }) => changed)).toEqual([[20], [20], [4000], [4000]]);
    expect(Math.max(...changes.map((change) => change.comparisons))).toBeLessThan(500);
    expect(claims.faultsOf(19)).toEqual([]);
    expect(claims.faultsOf(20).map(({ reason }) => reason)).toEqual(['ClientLimitExceeded']);
  });

  it('cost little where many want the same id', () => {
    let comparisons = 0;
    const same = (index: number): ClientClaim => ({
      ...web,
      uid: `uid-${index}`,
      maxClientsPerNamespace: 5000,
      get createdAt() {
        comparisons++;
        return index;
      },
    });
    const claims = new NamedClaims<number>();
    for (let index = 1; index < 5000; index++) claims.put(index, same(index));
    claims.recompute();
    comparisons = 0;
    claims.put(0, same(0));
    expect(claims.recompute()).toEqual([1]);
    expect(comparisons).toBeLessThan(500);
  });
});
