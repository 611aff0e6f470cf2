import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { KeyRing } from '../../../src/oauth/registry/keys.ts';
import { Registry } from '../../../src/oauth/registry/registry.ts';
import { Resources } from '../../../src/oauth/registry/resources.ts';
import { aClient } from '../a-client.ts';

const KEYS = new KeyRing([]);
const UIDS = ['u-1', 'u-2', 'u-3', 'u-4'];

const change = fc.record({
  uid: fc.constantFrom(...UIDS),
  clientId: fc.option(fc.constantFrom('a', 'b', 'c', 'd', 'e'), { nil: undefined }),
  allowedCorsOrigins: fc.subarray(['https://one.example', 'https://two.example']),
});

describe('a registry', () => {
  it('that was drafted is what a new one of the same clients would be, and the one before it stays what it was', () => {
    fc.assert(
      fc.property(fc.array(fc.array(change, { maxLength: 4 }), { maxLength: 8 }), (rounds) => {
        let registry = new Registry([], KEYS);
        let clients = new Map<string, ReturnType<typeof aClient>>();
        for (const changes of rounds) {
          const before = { registry, seen: seenIn(registry) };
          const after = new Map(clients);
          for (const { uid, clientId, allowedCorsOrigins } of changes) {
            const isTaken = [...after.values()].some((client) => client.clientId === clientId && client.uid !== uid);
            if (clientId === undefined || isTaken) after.delete(uid);
            else after.set(uid, aClient({ uid, clientId, allowedCorsOrigins }));
          }
          const draft = registry.draft();
          for (const [uid, client] of after) if (clients.get(uid) !== client) draft.put(client);
          for (const uid of clients.keys()) if (!after.has(uid)) draft.remove(uid);
          registry = draft.finish(KEYS, { resources: Resources.NONE, providers: [] });
          clients = after;
          expect(seenIn(registry)).toEqual(seenIn(new Registry([...clients.values()], KEYS)));
          expect(seenIn(before.registry)).toEqual(before.seen);
        }
      }),
    );
  });

  it('finds each of many clients by its id and by its uid, and no other', () => {
    const clients = Array.from({ length: 5000 }, (_, n) => aClient({ uid: `uid-${n}`, clientId: `team-${n}.app` }));
    const registry = new Registry(clients, KEYS);
    expect(registry.size).toBe(5000);
    for (const client of clients) {
      expect(registry.find(client.clientId)).toBe(client);
      expect(registry.findByUid(client.uid)).toBe(client);
    }
    expect(registry.find('team-5000.app')).toBeUndefined();
    expect(registry.find('__proto__')).toBeUndefined();
  });
});

function seenIn(registry: Registry) {
  return {
    size: registry.size,
    origins: [...registry.corsOrigins].sort(),
    byUid: UIDS.map((uid) => registry.findByUid(uid)?.clientId),
    byId: ['a', 'b', 'c', 'd', 'e'].map((clientId) => registry.find(clientId)?.uid),
  };
}
