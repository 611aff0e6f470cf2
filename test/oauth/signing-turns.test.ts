import { generateKeyPairSync, verify } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { generateSigningKeyPem, importSigningKey, type SigningKey } from '../../src/oauth/keys.ts';
import { SigningTurns } from '../../src/oauth/signing-turns.ts';

async function aKey(): Promise<SigningKey> {
  return importSigningKey(await generateSigningKeyPem('ES256'), 'ES256', 'Active');
}

function isRight(input: string, signature: string, { publicKey }: SigningKey): boolean {
  const key = { key: publicKey, dsaEncoding: 'ieee-p1363' } as const;
  return verify('sha256', Buffer.from(input), key, Buffer.from(signature, 'base64url'));
}

describe('signing turns', () => {
  it('give everybody the signature of what they asked for, with the key they named', async () => {
    const turns = new SigningTurns({ endOfTurn: setImmediate });
    const keys = await Promise.all([aKey(), aKey()]);
    const wanted = Array.from({ length: 20 }, (_, i) => ({ input: `input ${i}`, key: keys[i % 2] as SigningKey }));
    const signatures = await Promise.all(wanted.map(({ input, key }) => turns.sign(input, key)));
    expect(wanted.every(({ input, key }, i) => isRight(input, signatures[i] ?? '', key))).toBe(true);
    expect(isRight('input 0', await turns.sign('input 0', keys[0]), keys[0])).toBe(true);
  });

  it('let nobody go on before the last of a turn is signed, nor keep anybody for the next turn', async () => {
    const turns = new SigningTurns({ endOfTurn: setImmediate });
    const key = await aKey();
    const order: string[] = [];
    const first = turns.sign('first', key).then(() => order.push('first'));
    const nextTurn = new Promise<void>((resolve) => setImmediate(resolve)).then(() => order.push('next turn'));
    const second = turns.sign('second', key).then(() => order.push('second'));
    await Promise.all([first, nextTurn, second]);
    expect(order).toEqual(['first', 'second', 'next turn']);
  });

  it('fail for whoever has a key that cannot sign, and for nobody else', async () => {
    const turns = new SigningTurns({ endOfTurn: setImmediate });
    const key = await aKey();
    const broken = { ...key, privateKey: generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).publicKey };
    const [good, bad] = await Promise.allSettled([turns.sign('good', key), turns.sign('bad', broken)]);
    expect(good.status).toBe('fulfilled');
    expect(bad.status).toBe('rejected');
  });
});
