// What holds for the claims of any provider under any mapping: no fault is thrown, and what a person gets is in the claims and
// allowed by the manifest.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  admitPerson,
  type Claims,
  completed,
  factsOf,
  hasRequiredClaims,
  lacksMapped,
} from '../../../src/login/upstream/claims.ts';
import { anOidcProvider } from './providers.ts';

const DOMAINS = ['corp.example', 'partner.example', 'a.corp.example', 'example'];
const NAMES = ['sub', 'oid', 'email', 'email_verified', 'groups', 'name', '__proto__', 'constructor', '_claim_names'];

/** Texts that a provider may send for a name, an address or a group, and others like them. */
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.constantFrom('', 'ada', 'corp:dev', 'dev', 'Ada\n', 'a\u202eb', 'a'.repeat(255), '\ud800'),
  fc
    .tuple(
      fc.constantFrom('ada', 'a b', '', 'ada@x', '"a"'),
      fc.constantFrom(...DOMAINS, 'Corp.Example', 'corp.example.'),
    )
    .map(([local, domain]) => `${local}@${domain}`),
);
const value = fc.oneof(
  { weight: 3, arbitrary: text },
  { weight: 2, arbitrary: fc.array(text, { maxLength: 5 }) },
  fc.boolean(),
  fc.constantFrom('true', 'false', null, 0, 1, -1, Number.NaN, 1_700_000_000),
  fc.jsonValue({ maxDepth: 3 }),
);
/** As they come out of JSON, where `__proto__` is a name like others. */
const claims: fc.Arbitrary<Claims> = fc
  .tuple(
    fc.dictionary(fc.oneof(fc.constantFrom(...NAMES), fc.string({ maxLength: 5 })), value),
    fc.option(fc.constantFrom('ada-1', 'x'.repeat(255), 'x'.repeat(256), 'ä'), { freq: 5 }),
  )
  .map(([given, sub]) => JSON.parse(JSON.stringify(sub === null ? given : Object.assign({}, given, { sub }))));
/** A name, or a JSON Pointer. */
const claimName = fc.oneof(
  fc.constantFrom(...NAMES, '/groups', '/groups/0', '/a~1b/~0', '//', '/', '/__proto__/toString', '/constructor/name'),
  fc.string({ maxLength: 6 }),
);
const provider = fc
  .record({
    username: claimName,
    displayName: claimName,
    email: fc.oneof(fc.constant('email'), claimName),
    emailVerified: fc.oneof(fc.constant('email_verified'), claimName),
    groups: fc.oneof(fc.constant('groups'), claimName),
    subjectClaim: fc.constantFrom('sub' as const, 'oid' as const),
    assumeEmailVerified: fc.boolean(),
    prefix: fc.constantFrom('corp:', ''),
    include: fc.subarray(['**', 'd*', 'dev', '*']),
    allowCommas: fc.boolean(),
    emailDomains: fc.subarray(DOMAINS, { maxLength: 2 }),
    allowed: fc.subarray(['corp:dev', 'dev'], { maxLength: 1 }),
    requiredClaim: fc.option(claimName),
  })
  .map(
    ({
      prefix,
      include,
      allowCommas,
      emailDomains,
      allowed,
      requiredClaim,
      subjectClaim,
      assumeEmailVerified,
      ...names
    }) =>
      anOidcProvider({
        claims: names,
        subjectClaim,
        assumeEmailVerified,
        groups: { include, prefix, allowCommas },
        allow: { emailDomains, groups: allowed },
        requiredClaims: requiredClaim === null ? [] : [{ claim: requiredClaim, values: ['ada', 'dev'] }],
      }),
  );

const UNFIT = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u;

/** Each text anywhere in a value. */
function textsIn(found: unknown): readonly string[] {
  if (typeof found === 'string') return [found];
  return typeof found === 'object' && found !== null ? Object.values(found).flatMap(textsIn) : [];
}

const isFit = (name: string) => name !== '' && name.length <= 254 && !UNFIT.test(name) && name.isWellFormed();

describe('any claims under any mapping', () => {
  it('→ a person with what the claims hold and the manifest allows, a refusal, or none', () => {
    let people = 0;
    fc.assert(
      fc.property(claims, provider, fc.subarray(DOMAINS), (given, by, elsewhere) => {
        lacksMapped(given, by);
        hasRequiredClaims(given, by);
        const facts = factsOf(given, by);
        if (facts === undefined) return;
        const answer = admitPerson(facts, by, (domain) => elsewhere.includes(domain));
        if (answer.outcome !== 'asserted') return;
        people += 1;
        const { subject, username, displayName, email, groups, authTime } = answer.person;
        const said = textsIn(given);
        expect(subject).toMatch(/^usr_[A-Za-z0-9_-]{22}$/);
        for (const name of [username, ...(displayName === undefined ? [] : [displayName])]) {
          expect(isFit(name)).toBe(true);
          expect(said.some((each) => each.startsWith(name))).toBe(true);
        }
        expect(groups.length).toBeLessThanOrEqual(500);
        expect(new Set(groups).size).toBe(groups.length);
        for (const group of groups) {
          expect(group.startsWith(by.groups.prefix)).toBe(true);
          const own = group.slice(by.groups.prefix.length);
          expect([isFit(own), said.includes(own)]).toEqual([true, true]);
          expect(by.groups.allowCommas || !own.includes(',')).toBe(true);
        }
        const { emailDomains, groups: allowed } = by.allow;
        if (allowed.length > 0) expect(groups.some((group) => allowed.includes(group))).toBe(true);
        if (emailDomains.length > 0) expect(email).toBeDefined();
        if (email !== undefined) {
          const [, domain = '', ...more] = email.toLowerCase().split('@');
          expect([more, domain === '', said.includes(email)]).toEqual([[], false, true]);
          if (emailDomains.length > 0) expect(emailDomains).toContain(domain);
          else expect(elsewhere).not.toContain(domain);
        }
        if (authTime !== undefined) expect(Number.isFinite(authTime) && authTime >= 0).toBe(true);
      }),
      { numRuns: 4000 },
    );
    expect(people).toBeGreaterThan(100);
  });

  it('an address that the claims do not call verified → left out, unless the manifest assumes it', () => {
    fc.assert(
      fc.property(text, value, fc.boolean(), (email, verified, assumeEmailVerified) => {
        const given = JSON.parse(JSON.stringify({ sub: 'ada-1', email, email_verified: verified }));
        const by = anOidcProvider({ assumeEmailVerified });
        const facts = factsOf(given, by);
        const answer = facts && admitPerson(facts, by, () => false);
        if (answer?.outcome !== 'asserted') throw new Error('a subject is enough');
        const counts = assumeEmailVerified || given.email_verified === true || given.email_verified === 'true';
        if (!counts) expect(answer.person.email).toBeUndefined();
      }),
    );
  });

  it('an address of another domain than those of the manifest, however alike → refused', () => {
    const by = anOidcProvider({ allow: { emailDomains: ['corp.example'], groups: [] } });
    const around = fc.string({ unit: fc.constantFrom(...'a.-@ \t%/\\\u0000İ'), maxLength: 4 });
    fc.assert(
      fc.property(around, around, around, (local, before, after) => {
        const email = `${local}@${before}corp.example${after}`;
        const facts = factsOf({ sub: 'ada-1', email, email_verified: true }, by);
        const answer = facts && admitPerson(facts, by, () => false);
        const isOfDomain = before === '' && after === '' && /^[^@\s\p{Cc}]+$/u.test(local);
        expect(answer?.outcome, JSON.stringify(email)).toBe(isOfDomain ? 'asserted' : 'refused');
      }),
      { numRuns: 1000 },
    );
  });
});

describe('userinfo', () => {
  it('of any claims → what is signed stands, and an address is verified by the side that has it', () => {
    fc.assert(
      fc.property(claims, claims, provider, (signed, more, by) => {
        const all = completed(signed, more, by);
        for (const [name, given] of Object.entries(signed)) expect(all[name]).toEqual(given);
        for (const [name, given] of Object.entries(all)) {
          if (!Object.hasOwn(signed, name)) expect(given).toEqual(more[name]);
        }
        expect(Object.getPrototypeOf(all)).toBe(Object.prototype);
        factsOf(all, by);
      }),
      { numRuns: 1000 },
    );
  });
});
