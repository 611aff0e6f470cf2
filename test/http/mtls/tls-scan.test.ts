// The TLS that grantry terminates, tried by scanners (RFC 9325, BCP 195): versions, cipher suites, known attacks.

import { execFile, spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type MutualTlsGrantry, MutualTlsWorld } from './mutual-tls-grantry.ts';

const run = promisify(execFile);
// What goes by more than versions and cipher suites, all of which sslscan lists: heartbeats, CCS, tickets, ROBOT, renegotiation,
// compression of TLS and of HTTP.
const ATTACKS = ['-H', '-I', '-T', '-BB', '-R', '-C', '-B'];
const isThere = (program: string) => spawnSync(program, ['--version']).error === undefined || process.env.CI === 'true';

const world = new MutualTlsWorld();
let mtls: MutualTlsGrantry;

beforeAll(async () => {
  mtls = await world.start({ clients: [] });
});

afterAll(() => world.maker.remove());

describe('the listener for mutual TLS', () => {
  it.skipIf(!isThere('sslscan'))('given sslscan → TLS 1.2 and 1.3, with forward secrecy and AEAD alone', async () => {
    const { stdout } = await run('sslscan', ['--no-colour', '--xml=-', `127.0.0.1:${mtls.port}`]);
    const protocols = [...stdout.matchAll(/<protocol type="(\w+)" version="([\d.]+)" enabled="1"/g)];
    expect(protocols.map(([, type, version]) => `${type} ${version}`)).toEqual(['tls 1.2', 'tls 1.3']);
    expect(stdout).toContain('<renegotiation supported="0"');
    const suites = [...stdout.matchAll(/sslversion="(TLSv1\.[23])" bits="\d+" cipher="([\w-]+)"/g)];
    expect(suites.length).toBeGreaterThanOrEqual(6);
    for (const [, version, suite] of suites) {
      expect(suite).toMatch(version === 'TLSv1.3' ? /^TLS_(AES|CHACHA20)/ : /^ECDHE-ECDSA-(AES\d+-GCM|CHACHA20)/);
    }
  });

  it.skipIf(!isThere('testssl'))('given testssl.sh → no finding', { timeout: 240_000 }, async () => {
    const file = join(world.maker.folder, 'testssl.json');
    const quiet = ['--quiet', '--color', '0', '--warnings', 'off', '--jsonfile', file];
    await run('testssl', [...quiet, '-p', ...ATTACKS, `127.0.0.1:${mtls.port}`]).catch(() => undefined);
    const findings = JSON.parse(await readFile(file, 'utf8')) as { id: string; ip: string; severity: string }[];
    const about = findings.filter(({ ip }) => ip.includes('127.0.0.1'));
    expect(about.map(({ id }) => id)).toEqual(
      expect.arrayContaining(['TLS1_3', 'heartbleed', 'ROBOT', 'secure_client_renego']),
    );
    expect(about.filter(({ severity }) => !['OK', 'INFO'].includes(severity))).toEqual([]);
  });
});
