import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { KeyedHash } from '../../../src/oauth/values/keyed-hash.ts';

it('is HMAC-SHA-256, whatever the key and the messages, one after the other', () => {
  const key = fc.uint8Array({ maxLength: 150 });
  const messages = fc.array(fc.string({ unit: 'binary', maxLength: 300 }), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(key, messages, (bytes, texts) => {
      const keyedHash = new KeyedHash(bytes);
      for (const text of texts) {
        expect(keyedHash.of(text)).toBe(createHmac('sha256', bytes).update(text).digest('base64url'));
      }
    }),
  );
});

it('keeps its own copy of the key', () => {
  const key = Buffer.alloc(32, 1);
  const keyedHash = new KeyedHash(key);
  const before = keyedHash.of('text');
  key.fill(0);
  expect(keyedHash.of('text')).toBe(before);
});
