// Which refusals are remembered, and until when. What a real API server says is tested in
// test/cluster/controller/missing-rights.test.ts.

import { beforeEach, describe, expect, it } from 'vitest';
import { RbacDenials, type Right } from '../../../src/controller/leadership/rbac-denials.ts';
import { KubernetesError } from '../../../src/kubernetes/api/kubernetes-api.ts';
import { EVENTS, NAMESPACES, OAUTH_CLIENTS, SECRETS } from '../../../src/kubernetes/objects/resources.ts';
import { PlayedObjects } from '../../kubernetes/played-objects.ts';

const MINUTE = 60_000;
const WRITE: Right = { verb: 'patch', resource: SECRETS, namespace: 'shop' };

/** As the API server words it. */
function unauthorized({ verb, resource, namespace }: Right): KubernetesError {
  const detail = `${resource.plural} "web" is forbidden: User "grantry" cannot ${verb} resource "${resource.plural}"`;
  return refused({ verb, resource, namespace }, detail);
}

function refused({ verb, resource, namespace }: Right, detail: string, status = 403, causes: string[] = []) {
  return new KubernetesError({
    status,
    reason: status === 403 ? 'Forbidden' : 'Other',
    verb,
    resource,
    namespace,
    user: 'grantry',
    detail,
    causes,
  });
}

describe('a right that is missing', () => {
  let namespaces: PlayedObjects;
  let rights: RbacDenials;
  let logged: string[];
  let now: number;
  beforeEach(() => {
    now = Date.parse('2026-03-01T10:00:00Z');
    namespaces = new PlayedObjects(NAMESPACES);
    logged = [];
    const take = (level: string) => (_: unknown, message?: string) => void logged.push(`${level} ${message}`);
    rights = new RbacDenials({
      namespaces,
      clock: { now: () => now },
      log: { warn: take('warn'), info: take('info') },
    });
  });

  it('is said until a call of its kind goes through in that namespace, and logged once each time', () => {
    const error = unauthorized(WRITE);
    for (const _ of ['once', 'and again']) rights.recordResult(WRITE, error);
    expect([rights.fault, logged]).toEqual([error.message, [`warn ${error.message}`]]);
    rights.recordResult({ ...WRITE, namespace: 'other' });
    rights.recordResult({ ...WRITE, verb: 'create' });
    rights.recordResult({ ...WRITE, resource: OAUTH_CLIENTS, subresource: 'status' });
    expect(rights.fault).toBe(error.message);
    rights.recordResult(WRITE);
    expect(rights.fault).toBeUndefined();
    expect(logged[1]).toBe('info patch secrets in namespace shop: the right is there now');
    rights.recordResult(WRITE);
    rights.recordResult(WRITE, error);
    expect(logged.map((line) => line.split(' ')[0])).toEqual(['warn', 'info', 'warn']);
  });

  it.each([
    ['an exceeded quota', 'secrets "web" is forbidden: exceeded quota: few', 403, []],
    ['an admission webhook', 'admission webhook "no.example" denied the request: no', 403, []],
    [
      'a namespace that ends',
      'secrets "web" is forbidden: unable to create new content',
      403,
      ['NamespaceTerminating'],
    ],
    ['a conflict', 'the object has been modified', 409, []],
  ])('is not %s, which is no sign that it is still missing either', (_, detail, status, causes) => {
    const other = refused(WRITE, detail, status, causes);
    rights.recordResult(WRITE, other);
    expect([rights.fault, logged]).toEqual([undefined, []]);
    rights.recordResult(WRITE, unauthorized(WRITE));
    rights.recordResult(WRITE, other);
    expect(rights.fault).toBeUndefined();
  });

  it.each([
    ['no answer', 0],
    ['401', 401],
    ['500', 500],
  ])('is not there again because of %s', (_, status) => {
    rights.recordResult(WRITE, unauthorized(WRITE));
    rights.recordResult(WRITE, refused(WRITE, 'something else', status));
    expect(rights.fault).toContain('403');
  });

  it('is not reported for ever for a call that is not made any more', () => {
    const create: Right = { ...WRITE, verb: 'create' };
    const [ofCreate, ofPatch] = [unauthorized(create), unauthorized(WRITE)];
    rights.recordResult(create, ofCreate);
    rights.recordResult(WRITE, ofPatch);
    now += 5 * MINUTE;
    rights.recordResult(WRITE, ofPatch);
    now += 5 * MINUTE - 1;
    expect(rights.fault).toBe(`${ofCreate.message}; ${ofPatch.message}`);
    now += 1;
    expect(rights.fault).toBe(ofPatch.message);
    now += 5 * MINUTE;
    expect(rights.fault).toBeUndefined();
    // By then it is news.
    rights.recordResult(create, ofCreate);
    expect([rights.fault, logged]).toEqual([
      ofCreate.message,
      [ofCreate, ofPatch, ofCreate].map(({ message }) => `warn ${message}`),
    ]);
  });

  it('is counted in those namespaces alone in which a call was refused of late', () => {
    for (const namespace of ['a', 'b', 'c']) {
      rights.recordResult({ ...WRITE, namespace }, unauthorized({ ...WRITE, namespace }));
      now += 4 * MINUTE;
    }
    expect(rights.fault).toMatch(/^patch secrets in namespace b .*, and in 1 more namespaces$/);
  });

  it('in many namespaces is named in one of them, beside every other one', () => {
    for (const namespace of ['a', 'b', 'c'])
      rights.recordResult({ ...WRITE, namespace }, unauthorized({ ...WRITE, namespace }));
    const event: Right = { verb: 'patch', resource: EVENTS, namespace: 'a' };
    rights.recordResult(event, unauthorized(event));
    expect(rights.fault).toMatch(
      /^patch secrets in namespace a .*, and in 2 more namespaces; patch events\.events\.k8s\.io in/,
    );
  });

  it('is of no interest in a namespace that is gone, nor after the end', () => {
    for (const namespace of ['shop', 'other']) {
      namespaces.put({ metadata: { name: namespace } });
      rights.recordResult({ ...WRITE, namespace }, unauthorized({ ...WRITE, namespace }));
    }
    namespaces.delete('shop');
    expect(rights.fault).toMatch(/in namespace other as grantry: 403 Forbidden \([^,]*\)$/);
    rights.stop();
    expect(rights.fault).toBeUndefined();
  });
});
