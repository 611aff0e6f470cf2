// The admin port: liveness, readiness, metrics; and that it is another port (security row I4).

import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { ControllerMetrics } from '../../../src/http/metrics/controller-metrics.ts';
import { basic, type Grantry, startGrantry } from '../../grantry.ts';

const SECRET = 'kSiQ0yY8Jh1x4nV7wB2dR5tG9mC3fL6p';
const headers = { authorization: basic('team.machine', SECRET) };

let grantry: Grantry;
beforeAll(async () => {
  grantry = await startGrantry({
    clients: [{ clientId: 'team.machine', secret: SECRET }, { clientId: 'team.app' }],
  });
});

async function metric(name: string): Promise<readonly string[]> {
  const text = await (await fetch(grantry.adminUrl('/metrics'))).text();
  return text.split('\n').filter((line) => line.startsWith(name));
}

describe('the admin port', () => {
  it('is alive', async () => {
    const response = await fetch(grantry.adminUrl('/livez'));
    expect([response.status, await response.text()]).toEqual([200, 'ok\n']);
  });

  it('is ready with one line for each check, and red from the moment of draining on', async () => {
    const own = await startGrantry({ clients: [] });
    const ready = await fetch(own.adminUrl('/readyz'));
    expect([ready.status, await ready.text()]).toEqual([200, 'serving: ok\nsigning key: ok\n']);
    own.server.draining.begin();
    const draining = await fetch(own.adminUrl('/readyz'));
    expect([draining.status, await draining.text()]).toEqual([503, 'serving: draining\nsigning key: ok\n']);
    expect((await fetch(own.adminUrl('/livez'))).status).toBe(200);
  });

  it('a users file with a fault → a line and a gauge say so, and the process stays ready', async () => {
    const usersFile: { fault: string | undefined } = { fault: undefined };
    const own = await startGrantry({ clients: [], usersFile });
    const state = async () => {
      const [ready, metrics] = [await fetch(own.adminUrl('/readyz')), await fetch(own.adminUrl('/metrics'))];
      const gauge = /^grantry_users_last_reload_successful.*$/m.exec(await metrics.text())?.[0];
      return [ready.status, (await ready.text()).split('\n').at(-2), gauge];
    };
    expect(await state()).toEqual([200, 'users: ok', 'grantry_users_last_reload_successful 1']);
    usersFile.fault = 'the file cannot be used';
    expect(await state()).toEqual([200, 'users: the file cannot be used', 'grantry_users_last_reload_successful 0']);
    // Without a users file there is neither.
    expect(await metric('grantry_users_last_reload_successful')).toEqual([]);
    expect(await (await fetch(grantry.adminUrl('/readyz'))).text()).not.toContain('users');
  });

  it('Secrets with users that have a fault → a line and a gauge say so, and the process stays ready', async () => {
    const usersSecrets: { faults: { size: number }; fault: string | undefined } = {
      faults: { size: 0 },
      fault: undefined,
    };
    const own = await startGrantry({ clients: [], usersSecrets });
    const state = async () => {
      const [ready, metrics] = [await fetch(own.adminUrl('/readyz')), await fetch(own.adminUrl('/metrics'))];
      const gauge = /^grantry_users_secrets_faulty.*$/m.exec(await metrics.text())?.[0];
      return [ready.status, (await ready.text()).split('\n').at(-2), gauge];
    };
    expect(await state()).toEqual([200, 'users secrets: ok', 'grantry_users_secrets_faulty 0']);
    Object.assign(usersSecrets, { faults: { size: 2 }, fault: 'the Secret people: faulty' });
    expect(await state()).toEqual([200, 'users secrets: the Secret people: faulty', 'grantry_users_secrets_faulty 2']);
    // Without a cluster there is neither.
    expect(await metric('grantry_users_secrets_faulty')).toEqual([]);
  });

  it('logs readiness when it changes, with what is missing, and not at every probe', async () => {
    const own = await startGrantry({ clients: [] });
    const look = async () => await (await fetch(own.adminUrl('/readyz'))).text();
    for (const _ of [1, 2, 3]) await look();
    own.server.draining.begin();
    for (const _ of [1, 2, 3]) await look();
    await fetch(own.adminUrl('/readyz'), { method: 'POST' });
    await look();
    const lines = own.logs().filter(({ route }) => route === 'readyz');
    expect(lines.map(({ level, outcome, reason }) => [level, outcome, reason])).toEqual([
      ['info', 'ready', undefined],
      ['warn', 'not_ready', 'serving'],
      ['info', 'refused', 'method_not_allowed'],
    ]);
  });

  it('answers HEAD, and 405 to everything else', async () => {
    for (const path of ['/livez', '/readyz', '/metrics']) {
      expect((await fetch(grantry.adminUrl(path), { method: 'HEAD' })).status).toBe(200);
      const post = await fetch(grantry.adminUrl(path), { method: 'POST' });
      expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    }
  });

  it('serves nothing public, and the public port nothing of it', async () => {
    for (const path of ['/token', '/authorize', '/.well-known/jwks.json', '/.well-known/oauth-authorization-server']) {
      expect((await fetch(grantry.adminUrl(path))).status).toBe(404);
    }
    for (const path of ['/livez', '/readyz', '/metrics']) {
      expect((await fetch(grantry.url(path))).status).toBe(404);
    }
  });
});

describe('the metrics', () => {
  it('count requests by route, method and status, and never by what was asked for', async () => {
    await fetch(grantry.url('/some/path/of/a/stranger'));
    await fetch(grantry.url('/token'), { method: 'PUT' });
    await grantry.post('/token', { grant_type: 'client_credentials' }, { headers });
    const lines = await metric('grantry_http_request_duration_seconds_count');
    expect(lines).toContainEqual(expect.stringMatching(/\{route="unmatched",method="GET",status="404"\} \d+$/));
    expect(lines).toContainEqual(expect.stringMatching(/\{route="token",method="PUT",status="405"\} \d+$/));
    expect(lines).toContainEqual(expect.stringMatching(/\{route="token",method="POST",status="200"\} \d+$/));
    expect(lines.join()).not.toContain('stranger');
  });

  it('count tokens, refusals and authentications', async () => {
    await grantry.post('/token', { grant_type: 'client_credentials' }, { headers });
    await grantry.post('/token', { grant_type: 'magic' }, { headers });
    await grantry.post(
      '/token',
      { grant_type: 'magic' },
      { headers: { authorization: basic('team.machine', 'wrong') } },
    );
    expect(await metric('grantry_tokens_issued_total')).toContainEqual(
      expect.stringMatching(/\{grant="client_credentials",format="jwt"\} \d+$/),
    );
    expect(await metric('grantry_token_errors_total')).toContainEqual(
      expect.stringMatching(/\{endpoint="token",error="unsupported_grant_type",reason="[a-z_]+"\} \d+$/),
    );
    const authentications = await metric('grantry_client_authentication_total');
    for (const outcome of ['succeeded', 'failed']) {
      expect(authentications).toContainEqual(
        expect.stringMatching(new RegExp(`\\{method="client_secret_basic",outcome="${outcome}"\\} \\d+$`)),
      );
    }
  });

  it('count a public client as authenticated, also where that is not enough', async () => {
    const response = await grantry.post('/introspect', { client_id: 'team.app', token: 'any' });
    expect(response.status).toBe(401);
    const authentications = (await metric('grantry_client_authentication_total')).join('\n');
    expect(authentications).toMatch(/\{method="none",outcome="succeeded"\} 1$/m);
    expect(authentications).not.toContain('method="unknown"');
    expect(authentications).not.toContain('method="none",outcome="failed"');
  });

  it('count as token errors only what authorization, token, revocation and introspection refused', async () => {
    for (const path of ['/livez', '/readyz', '/metrics', '/nowhere']) {
      await fetch(grantry.adminUrl(path), { method: 'POST' });
    }
    for (const path of ['/.well-known/jwks.json', '/.well-known/oauth-authorization-server', '/login', '/authorize']) {
      await fetch(grantry.url(path), { method: 'PUT' });
    }
    for (const path of ['/token', '/revoke', '/introspect']) await grantry.post(path, {}, { headers });
    const endpoints = (await metric('grantry_token_errors_total{')).map((line) => /endpoint="(\w+)"/.exec(line)?.[1]);
    expect([...new Set(endpoints)].sort()).toEqual(['authorize', 'introspect', 'revoke', 'token']);
  });

  it('say how many clients there are, and never which', async () => {
    expect(await metric('grantry_registry_clients')).toEqual(['grantry_registry_clients{state="admitted"} 2']);
    expect((await metric('')).join('\n')).not.toContain('team.machine');
  });

  it('are those of the reference', async () => {
    const page = readFileSync(new URL('../../../docs/reference/logs-metrics-audit.md', import.meta.url), 'utf8');
    const documented = [...page.matchAll(/^\| `(grantry_\w+)` \|/gm)].map(([, name]) => name);
    const followed = { now: () => 0, lastProgress: () => 0, signingKey: () => undefined };
    const controller = new ControllerMetrics({ isLeading: () => true, queued: () => 0, followed });
    const lines = [...(await metric('# TYPE ')), ...(await controller.text()).split('\n')];
    const served = lines
      .filter((line) => line.startsWith('# TYPE '))
      .map((line) => line.split(' ')[2])
      .filter((name) => !/^grantry_(process|nodejs)_/.test(name ?? ''));
    expect(new Set(served)).toEqual(new Set(documented));
  });
});
