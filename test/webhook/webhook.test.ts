// A post to a real receiver, and the check of its signature as the guide shows it to receivers.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { Webhook, type WebhookOptions } from '../../src/webhook/webhook.ts';
import { startReceiver } from './receiver.ts';

const NOW = Date.UTC(2026, 0, 1, 12);
const SECRET = 'a secret that both sides know, 32 or more';
const BODY = JSON.stringify({ id: '007.x', type: 'refresh_token.reuse_detected', note: 'ünïcode' });

const receiver = await startReceiver();
const folder = mkdtempSync(join(tmpdir(), 'grantry-webhook-'));
afterAll(() => {
  receiver.stop();
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  receiver.answer = { status: 204 };
});

function webhook(options: Partial<WebhookOptions> = {}): Webhook {
  return new Webhook({ url: receiver.url, secrets: () => [SECRET], clock: { now: () => NOW }, ...options });
}

type Check = (secret: string, header: string, body: string, now: number) => boolean;

/** The function that the guide gives to receivers. */
async function guidesCheck(): Promise<Check> {
  const guide = readFileSync(new URL('../../docs/guides/alerts.md', import.meta.url), 'utf8');
  const [, source = ''] = /```js\n(.*?)```/s.exec(guide) ?? [];
  const file = join(folder, 'check.mjs');
  writeFileSync(file, source);
  return ((await import(file)) as { readonly isFromGrantry: Check }).isFromGrantry;
}

async function post(options?: Partial<WebhookOptions>) {
  const answer = await webhook(options).post(BODY);
  const { headers = {}, body = '' } = receiver.received.at(-1) ?? {};
  return { answer, headers, body, signature: String(headers['grantry-signature']) };
}

describe('an alert that is posted', () => {
  it('is JSON, signed with its time, and passes the check of the guide', async () => {
    const isFromGrantry = await guidesCheck();
    const { answer, headers, body, signature } = await post();
    expect(answer).toEqual({ accepted: true });
    expect(headers['content-type']).toBe('application/json');
    expect(body).toBe(BODY);
    expect(signature).toMatch(new RegExp(`^t=${NOW / 1000},v1=[0-9a-f]{64}$`));
    expect(isFromGrantry(SECRET, signature, body, NOW / 1000)).toBe(true);
  });

  it('does not pass when anything is another', async () => {
    const isFromGrantry = await guidesCheck();
    const { body, signature } = await post();
    const now = NOW / 1000;
    const later = signature.replace(`t=${now}`, `t=${now + 1}`);
    expect(isFromGrantry('another secret', signature, body, now)).toBe(false);
    expect(isFromGrantry(SECRET, signature, `${body} `, now)).toBe(false);
    expect(isFromGrantry(SECRET, later, body, now)).toBe(false);
    expect(isFromGrantry(SECRET, signature, body, now + 301)).toBe(false);
    expect(isFromGrantry(SECRET, `t=${now},v1=`, body, now)).toBe(false);
    expect(isFromGrantry(SECRET, '', body, now)).toBe(false);
  });

  it('is signed with every secret, so that one can be replaced without a gap', async () => {
    const isFromGrantry = await guidesCheck();
    const { body, signature } = await post({ secrets: () => ['the next secret of both sides', SECRET] });
    for (const secret of ['the next secret of both sides', SECRET]) {
      expect(isFromGrantry(secret, signature, body, NOW / 1000)).toBe(true);
    }
  });
});

describe('an alert that is not accepted', () => {
  it.each([400, 401, 410, 500, 503])('is one that is answered %i', async (status) => {
    receiver.answer = { status };
    expect((await post()).answer).toEqual({ accepted: false, fault: `status_${status}` });
  });

  it('is one that is answered by a redirect, which is not followed', async () => {
    receiver.answer = { status: 307, headers: { location: receiver.url } };
    const before = receiver.received.length;
    expect((await post()).answer).toEqual({ accepted: false, fault: 'status_307' });
    expect(receiver.received).toHaveLength(before + 1);
  });

  it('is one that is not answered in time', async () => {
    receiver.answer = undefined;
    expect((await post({ limit: 100 })).answer).toEqual({ accepted: false, fault: 'timeout' });
  });

  it('is one that no server takes', async () => {
    expect((await post({ url: 'http://127.0.0.1:9/' })).answer).toEqual({
      accepted: false,
      fault: expect.stringMatching(/^(econnrefused|failed)$/),
    });
  });

  it('is one that cannot be signed', async () => {
    const secrets = () => {
      throw new Error('the file is gone');
    };
    expect((await post({ secrets })).answer).toEqual({ accepted: false, fault: 'failed' });
  });
});
