// A token server judges once what many clients have in common. A client that differs in one field only from one that is
// served is judged as if it were alone.

import { describe, expect, it } from 'vitest';
import { CLIENT_POLICY } from '../../src/admission/kinds/client-policy.ts';
import { policyOf } from '../../src/admission/policies/policy.ts';
import { AdmittedClients } from '../../src/cluster-registry/admitted-clients.ts';
import { clientKeeper } from '../../src/cluster-registry/kept-client.ts';
import { objectKey } from '../../src/kubernetes/objects/resources.ts';
import { availableMethods } from '../../src/oauth/client-auth/index.ts';
import { KeyRing } from '../../src/oauth/registry/keys.ts';
import { Resources } from '../../src/oauth/registry/resources.ts';
import { DIFFERENCES, PERMITTED, PERMITTING } from '../admission/differing-clients.ts';
import { clientDocument, policyDocument } from '../admission/world.ts';

const CREATED = '2026-01-01T00:00:00Z';

/** A token server with the policy and these clients, judged in this order; what it serves of them. */
function served(...specs: readonly Readonly<Record<string, unknown>>[]) {
  const keep = clientKeeper({
    className: 'default',
    issuer: 'https://id.example',
    supportedAuthMethods: [...availableMethods({ mutualTls: false }).keys()],
  });
  const clients = new AdmittedClients({
    issuer: 'https://id.example',
    releaseNamespace: 'grantry',
    defaultPolicy: 'Baseline',
    supportedAuthMethods: [...availableMethods({ mutualTls: false }).keys()],
    clock: { now: () => Date.parse(CREATED) },
    ownerOf: () => undefined,
    labelsOf: (namespace) => ({ 'kubernetes.io/metadata.name': namespace }),
    verifiersOf: () => ({ revision: 1, verifiers: [{ verifier: new Uint8Array(32).fill(1), revision: 1 }] }),
  });
  clients.setPolicies([policyOf(CLIENT_POLICY.ignore.parse(policyDocument(PERMITTING)))]);
  for (const [index, spec] of specs.entries()) {
    const metadata = { uid: `uid-${index}`, resourceVersion: '1', generation: 1, creationTimestamp: CREATED };
    const { apiVersion, kind, ...manifest } = clientDocument(spec, { name: `app-${index}`, ...metadata });
    const object = { apiVersion: String(apiVersion), kind: String(kind), ...manifest } as Parameters<typeof keep>[0];
    clients.put(keep(object, objectKey(object.metadata)));
    clients.judge(object.metadata.uid);
  }
  clients.settle();
  return clients
    .publish(new KeyRing([]), { resources: Resources.NONE, providers: [] })
    .changes.map(({ kind, reason }) => reason ?? kind);
}

describe('a client that differs from a served one', () => {
  it('in nothing but its name → is served', () => {
    expect(served(PERMITTED, PERMITTED)).toEqual(['accepted', 'accepted']);
  });

  it.each(DIFFERENCES)('in %s → is refused with %s', (_rule, reason, spec) => {
    expect(served(PERMITTED, { ...PERMITTED, ...spec }, PERMITTED)).toEqual(['accepted', reason, 'accepted']);
  });
});
