// The issuer of ServiceAccount tokens as a replica reads it: how long it is used, when it is read again, and what a failed read
// is called. The documents of a real API server are in test/cluster/.

import { beforeEach, describe, expect, it } from 'vitest';
import { ApiServerIssuer, type IssuerRead } from '../../../src/kubernetes/api/api-server-issuer.ts';
import { KubernetesError } from '../../../src/kubernetes/api/kubernetes-api.ts';
import { TestClock } from '../../grantry.ts';
import { aKey } from '../../oauth/values/signed-tokens.ts';

const ISSUER = 'https://kubernetes.default.svc.cluster.local';
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const [OLD, NEW] = ['old', 'new'].map((kid) => ({ ...aKey('RS256').jwk, kid }));

let clock: TestClock;
let documents: () => { readonly configuration: unknown; readonly jwks: unknown };
let reads: IssuerRead['outcome'][];
let issuer: ApiServerIssuer;

beforeEach(() => {
  clock = new TestClock();
  publish(OLD);
  reads = [];
  const document = async (path: string) => {
    const { configuration, jwks } = documents();
    return path === '/openid/v1/jwks' ? jwks : configuration;
  };
  issuer = new ApiServerIssuer({ api: { document }, clock, onRead: ({ outcome }) => void reads.push(outcome) });
});

function publish(...keys: readonly unknown[]): void {
  documents = () => ({ configuration: { issuer: ISSUER }, jwks: { keys } });
}

function fail(status: number): void {
  documents = () => {
    const resource = { group: '', version: '', plural: '/openid/v1/jwks', kind: '' };
    throw new KubernetesError({ status, reason: 'Failed', verb: 'get', resource, user: 'a replica' });
  };
}

const kids = async (kid: string) => (await issuer.current(kid)).keys.map((key) => key.kid);
const refusal = (kid: string) =>
  issuer.current(kid).then(
    () => undefined,
    ({ code, reason, detail }) => ({ code, reason, detail }),
  );
const unavailable = (detail: string) => ({
  code: 'temporarily_unavailable',
  reason: 'cluster_issuer_unavailable',
  detail,
});

describe('the issuer of the cluster', () => {
  it('within 5 minutes → read once; later → read again', async () => {
    await kids('old');
    clock.advance(5 * MINUTE);
    expect(await kids('old')).toEqual(['old']);
    expect(reads).toEqual(['read']);
    clock.advance(1);
    await kids('old');
    expect(reads).toEqual(['read', 'read']);
  });

  it('given a key that it lacks → read at once, then once in 30 seconds', async () => {
    await kids('old');
    publish(OLD, NEW);
    clock.advance(1);
    expect(await kids('new')).toEqual(['old', 'new']);
    await kids('stranger');
    await kids('stranger');
    expect(reads).toHaveLength(2);
    clock.advance(30 * SECOND);
    await kids('stranger');
    expect(reads).toHaveLength(3);
  });

  it('without the old key, once it is read after 10 minutes → that key is gone', async () => {
    await kids('old');
    publish(NEW);
    clock.advance(10 * MINUTE + 1);
    expect(await kids('old')).toEqual(['new']);
  });

  it('while the API server is unavailable → used for 24 hours, then 503', async () => {
    await kids('old');
    fail(0);
    clock.advance(24 * HOUR);
    expect(await kids('old')).toEqual(['old']);
    expect(issuer.fault).toBeDefined();
    clock.advance(5 * SECOND);
    expect(await refusal('old')).toEqual(unavailable('unreachable'));
    publish(OLD);
    clock.advance(5 * SECOND);
    expect(await kids('old')).toEqual(['old']);
    expect(issuer.fault).toBeUndefined();
  });

  it.each<[string, () => void, IssuerRead['outcome']]>([
    ['401', () => fail(401), 'forbidden'],
    ['403', () => fail(403), 'forbidden'],
    ['500', () => fail(500), 'unreachable'],
    ['no answer', () => fail(0), 'unreachable'],
    ['no key', () => publish(), 'malformed'],
    ['a key set that is none', () => publish('x'), 'malformed'],
    ['no issuer', () => (documents = () => ({ configuration: {}, jwks: { keys: [OLD] } })), 'malformed'],
  ])('never read, given %s → 503 with the outcome, which is counted and named', async (_, given, outcome) => {
    given();
    expect(await refusal('old')).toEqual(unavailable(outcome));
    expect(issuer.reads.get(outcome)).toBe(1);
    expect(issuer.fault).toBeDefined();
  });
});
