// What the claims of an identity provider become, and what its manifest lets in.

import { describe, expect, it } from 'vitest';
import {
  admitPerson,
  type Claims,
  completed,
  factsOf,
  hasRequiredClaims,
  lacksMapped,
  subjectOf,
} from '../../../src/login/upstream/claims.ts';
import type { OidcProvider } from '../../../src/oauth/registry/identity-provider.ts';
import { anOidcProvider } from './providers.ts';

const ADA = {
  sub: 'ada-1',
  preferred_username: 'ada',
  name: 'Ada Lovelace',
  email: 'ada@corp.example.com',
  email_verified: true,
  groups: ['dev', 'ops'],
};

interface Asserted {
  readonly claims?: Record<string, unknown>;
  readonly provider?: Partial<OidcProvider>;
  /** Domains that other providers list. */
  readonly elsewhere?: readonly string[];
}

function answerTo({ claims = {}, provider = {}, elsewhere = [] }: Asserted) {
  const by = anOidcProvider(provider);
  const facts = factsOf(Object.assign({}, ADA, claims), by);
  return facts && admitPerson(facts, by, (domain) => elsewhere.includes(domain));
}

function personOf(asserted: Asserted) {
  const answer = answerTo(asserted);
  if (answer?.outcome !== 'asserted') throw new Error(`expected a person, got ${JSON.stringify(answer)}`);
  return answer.person;
}

function reasonOf(asserted: Asserted) {
  const answer = answerTo(asserted);
  return answer?.outcome === 'refused' ? answer.reason : answer?.outcome;
}

describe('the subject', () => {
  it('of one person → the same text, whatever else the provider says', () => {
    const { subject } = personOf({ claims: { email: 'other@corp.example.com', preferred_username: 'lovelace' } });
    expect(subject).toBe(personOf({}).subject);
    expect(subject).toMatch(/^usr_[A-Za-z0-9_-]{22}$/);
  });

  it('of two issuers, or of two subjects → two', () => {
    const subjects = [
      {},
      { provider: { issuer: 'https://corp.example.com/' } },
      { claims: { sub: 'ada-2' } },
      { claims: { oid: 'ada-3' }, provider: { subjectClaim: 'oid' as const } },
    ].map((asserted) => personOf(asserted).subject);
    expect(new Set(subjects).size).toBe(4);
    expect(subjectOf('github', 'github.com', '1')).not.toBe(subjectOf('github', 'github.com1', ''));
  });

  it('of a person of before → the same: what a person holds is by it', () => {
    expect(personOf({}).subject).toBe('usr_EHiUD1UExPKQJxdPYc9aKw');
  });

  it.each([[''], ['a'.repeat(256)], ['a\0b'], ['ä'], [17], [null], [undefined], [['ada-1']]])(
    '%j → no person',
    (sub) => {
      expect(answerTo({ claims: { sub } })).toBeUndefined();
    },
  );

  it('of 255 characters → a person', () => {
    expect(personOf({ claims: { sub: 'a'.repeat(255) } }).subject).toMatch(/^usr_/);
  });
});

describe('names', () => {
  it.each([
    ['255 characters', 'a'.repeat(255)],
    ['a line break', 'Ada\nLovelace'],
    ['NUL', 'Ada\0'],
    ['text that runs from right to left', 'Ada\u202egnp'],
    ['half a character', 'Ada\ud800'],
    ['none', ''],
    ['a number', 7],
  ])('with %s → left out', (_case, name) => {
    expect(personOf({ claims: { name } }).displayName).toBeUndefined();
    expect(personOf({ claims: { preferred_username: name } }).username).toBe('ada-1');
  });

  it('of 254 characters, in any script → kept', () => {
    for (const name of ['a'.repeat(254), '李雷', 'Zoë', '👩‍💻'])
      expect(personOf({ claims: { name } }).displayName).toBe(name);
  });

  it('at a JSON Pointer → found, and never by inheritance', () => {
    const claims = { 'a/b': { '~': 'Ada' } };
    const at = (displayName: string) =>
      personOf({ claims, provider: { claims: Object.assign({}, anOidcProvider().claims, { displayName }) } })
        .displayName;
    expect(at('/a~1b/~0')).toBe('Ada');
    for (const absent of ['/a~1b', '/a~1b/~0/length', '/constructor/name', '/toString', '__proto__', '/groups/0'])
      expect(at(absent)).toBeUndefined();
  });
});

describe('the address', () => {
  it.each([
    [true, 'ada@corp.example.com'],
    ['true', 'ada@corp.example.com'],
    [false, undefined],
    ['false', undefined],
    [1, undefined],
    [undefined, undefined],
  ])('verified: %j → %s', (email_verified, email) => {
    const person = personOf({ claims: { email_verified } });
    const unverifiedEmail = email === undefined ? ADA.email : undefined;
    expect([person.email, person.unverifiedEmail]).toEqual([email, unverifiedEmail]);
  });

  it('assumed to be verified → counts', () => {
    const provider = { assumeEmailVerified: true };
    expect(personOf({ claims: { email_verified: undefined }, provider }).email).toBe('ada@corp.example.com');
  });

  it.each([
    'ada',
    'ada@',
    '@corp.example.com',
    'a@b@corp.example.com',
    'a da@corp.example.com',
    `${'a'.repeat(251)}@b.c`,
  ])('%s → none', (email) => {
    expect(personOf({ claims: { email } }).email).toBeUndefined();
  });

  it('in a domain that another provider lists → unverified, unless this one lists it too', () => {
    const elsewhere = ['corp.example.com'];
    expect(personOf({ elsewhere }).email).toBeUndefined();
    expect(personOf({ elsewhere, claims: { email: 'ada@CORP.example.com' } }).email).toBeUndefined();
    const allow = { emailDomains: ['corp.example.com'], groups: [] };
    expect(personOf({ elsewhere, provider: { allow } }).email).toBe('ada@corp.example.com');
  });

  it('outside of the domains → refused: the domain is compared whole', () => {
    const provider = { allow: { emailDomains: ['corp.example.com'], groups: [] } };
    expect(personOf({ provider, claims: { email: 'Ada@Corp.Example.com' } }).email).toBe('Ada@Corp.Example.com');
    for (const domain of ['evilcorp.example.com', 'corp.example.com.evil.example', 'a.corp.example.com', 'example.com'])
      expect(reasonOf({ provider, claims: { email: `ada@${domain}` } })).toBe('person_not_permitted');
    for (const claims of [{ email: undefined }, { email_verified: false }])
      expect(reasonOf({ provider, claims })).toBe('email_not_verified');
  });
});

describe('groups', () => {
  it.each([
    [
      ['dev', 'ops', 'dev'],
      ['corp:dev', 'corp:ops'],
    ],
    ['dev', ['corp:dev']],
    [['dev', 7, null, { a: 1 }, 'a\nb', ''], ['corp:dev']],
    [{ dev: true }, []],
    [undefined, []],
  ])('%j → %j', (groups, expected) => {
    expect(personOf({ claims: { groups } }).groups).toEqual(expected);
  });

  it('chosen by globs of their own names → with the prefix afterwards', () => {
    const groups = { include: ['de*'], prefix: '', allowCommas: false };
    expect(personOf({ provider: { groups } }).groups).toEqual(['dev']);
    expect(
      personOf({ provider: { groups: { include: ['corp:*'], prefix: 'corp:', allowCommas: false } } }).groups,
    ).toEqual([]);
  });

  it.each([
    ['a comma', 'x,good:admins'],
    ['a distinguished name', 'cn=dev,ou=teams,dc=corp'],
    ['a line break', 'x\ngood:admins'],
    ['DEL', 'x\x7f'],
    ['the end of a direction', 'x\u202c'],
    ['255 characters', 'x'.repeat(255)],
  ])('whose name has %s → left out and counted; the others stay', (_, group) => {
    const answer = answerTo({ claims: { groups: [group, 'dev', group, ''] } });
    expect(answer).toMatchObject({ outcome: 'asserted', person: { groups: ['corp:dev'] }, groupsLeftOut: 1 });
  });

  it('whose name has a comma, where the provider allows commas → taken over; other characters stay out', () => {
    const groups = { include: ['**'], prefix: '', allowCommas: true };
    const answer = answerTo({ provider: { groups }, claims: { groups: ['cn=dev,ou=teams', 'a\nb'] } });
    expect(answer).toMatchObject({ outcome: 'asserted', person: { groups: ['cn=dev,ou=teams'] }, groupsLeftOut: 1 });
  });

  it('that the globs leave out → not counted, whatever their names', () => {
    const groups = { include: ['de*'], prefix: '', allowCommas: false };
    expect(answerTo({ provider: { groups }, claims: { groups: ['x,y', 'dev'] } })).toMatchObject({ groupsLeftOut: 0 });
  });

  it('of which 500 are left beside those that are left out → let in', () => {
    const groups = [...Array.from({ length: 500 }, (_, index) => `g${index}`), 'a,b'];
    expect(answerTo({ claims: { groups } })).toMatchObject({ outcome: 'asserted', groupsLeftOut: 1 });
  });

  it('in the token, even none of them, or not in it without a word of too many → no overage', () => {
    const distributed = { _claim_names: { roles: 'src1' } };
    const claimed = [{}, { groups: [] }, { groups: undefined }, { groups: undefined, ...distributed }];
    expect(claimed.map((claims) => answerTo({ claims }))).toMatchObject(claimed.map(() => ({ isOverage: false })));
    expect(answerTo({ claims: { hasgroups: true } })).toMatchObject({
      isOverage: false,
      person: { groups: ['corp:dev', 'corp:ops'] },
    });
  });

  it('of which one is allowed, as mapped → let in; of which none is → refused', () => {
    const allowing = (group: string) => ({ allow: { emailDomains: [], groups: [group] } });
    expect(reasonOf({ provider: allowing('corp:dev') })).toBe('asserted');
    expect(reasonOf({ provider: allowing('dev') })).toBe('person_not_permitted');
  });

  it('501 after the globs → refused; 500 → let in', () => {
    const many = (count: number) => Array.from({ length: count }, (_, index) => `g${index}`);
    expect(reasonOf({ claims: { groups: many(501) } })).toBe('too_many_groups');
    expect(reasonOf({ claims: { groups: many(500) } })).toBe('asserted');
    const provider = { groups: { include: ['g1*'], prefix: '', allowCommas: false } };
    expect(reasonOf({ claims: { groups: many(501) }, provider })).toBe('asserted');
  });

  it.each([[{ _claim_names: { groups: 'src1' } }], [{ hasgroups: true }], [{ hasgroups: 'true' }]])(
    'too many for the token, by %j → refused where groups decide, else none',
    (overage) => {
      const claims = Object.assign({ groups: undefined }, overage);
      expect(answerTo({ claims })).toMatchObject({ outcome: 'asserted', person: { groups: [] }, isOverage: true });
      const provider = { allow: { emailDomains: [], groups: ['corp:dev'] } };
      expect(reasonOf({ claims, provider })).toBe('groups_overage');
    },
  );
});

describe('the claims of userinfo beside an ID token', () => {
  const NESTED = { claims: Object.assign({}, anOidcProvider().claims, { emailVerified: '/contact/verified' }) };
  const ADDRESS = { email: 'ada@corp.example.com' };

  function emailOf(signed: Claims, userinfo: Claims, provider: Partial<OidcProvider> = {}) {
    const by = anOidcProvider(provider);
    const facts = factsOf(completed(Object.assign({ sub: 'ada-1' }, signed), userinfo, by), by);
    const answer = facts && admitPerson(facts, by, () => false);
    return answer?.outcome === 'asserted' ? answer.person.email : answer;
  }

  it.each<[string, Claims, Claims, Partial<OidcProvider>, string | undefined]>([
    ['of the same address', ADDRESS, { ...ADDRESS, email_verified: true }, {}, ADDRESS.email],
    ['of another one', ADDRESS, { email: 'eve@corp.example.com', email_verified: true }, {}, undefined],
    ['of none', ADDRESS, { email_verified: true }, {}, undefined],
    ['of one that is no text', ADDRESS, { email: [ADDRESS.email], email_verified: true }, {}, undefined],
    ['of an address that only userinfo has', {}, { ...ADDRESS, email_verified: true }, {}, ADDRESS.email],
    [
      'inside an object, of the same address',
      ADDRESS,
      { ...ADDRESS, contact: { verified: true } },
      NESTED,
      ADDRESS.email,
    ],
    ['inside an object, of another one', ADDRESS, { email: 'e@x', contact: { verified: true } }, NESTED, undefined],
    ['against a signed no', { ...ADDRESS, email_verified: false }, { ...ADDRESS, email_verified: true }, {}, undefined],
    ['no, against a signed yes', { ...ADDRESS, email_verified: true }, { email_verified: false }, {}, ADDRESS.email],
  ])(
    'with a word about verification %s → the address counts only where it is of that one',
    (_case, signed, userinfo, provider, email) => {
      expect(emailOf(signed, userinfo, provider)).toBe(email);
    },
  );

  it('given an address of its own → what else it says counts, and the signed address stays', () => {
    const userinfo = { email: 'eve@corp.example.com', email_verified: true, groups: ['ops'], name: 'Ada' };
    expect(completed(ADDRESS, userinfo, anOidcProvider())).toEqual({ ...ADDRESS, groups: ['ops'], name: 'Ada' });
  });
});

describe('required claims', () => {
  const required = (claims: Claims) =>
    hasRequiredClaims(claims, { requiredClaims: [{ claim: 'hd', values: ['corp.example.com', 'corp.example.org'] }] });

  it('with one of the values → met; with another, with none, or with a list → not', () => {
    expect(required({ hd: 'corp.example.org' })).toBe(true);
    for (const hd of ['evil.example', '', undefined, ['corp.example.org'], { toString: () => 'corp.example.org' }])
      expect(required({ hd })).toBe(false);
  });

  it('none → met', () => expect(hasRequiredClaims({}, { requiredClaims: [] })).toBe(true));
});

it('a mapped or required claim that is absent → userinfo is asked', () => {
  expect(lacksMapped(ADA, anOidcProvider())).toBe(false);
  expect(lacksMapped(Object.assign({}, ADA, { groups: undefined }), anOidcProvider())).toBe(true);
  expect(lacksMapped(ADA, anOidcProvider({ requiredClaims: [{ claim: 'hd', values: ['a'] }] }))).toBe(true);
});

it('the time of the sign-in → milliseconds, where it is one', () => {
  for (const auth_time of [1_700_000_000, 1_700_000_000.000125])
    expect(personOf({ claims: { auth_time } }).authTime).toBe(1_700_000_000_000);
  expect(personOf({ claims: { auth_time: 0 } }).authTime).toBe(0);
  for (const auth_time of ['1700000000', -1, Number.NaN, 1e300, undefined])
    expect(personOf({ claims: { auth_time } }).authTime).toBeUndefined();
});
