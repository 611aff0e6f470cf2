// oauth4webapi 3, unmodified, finds the metadata of an API at the API's own well-known address, which nginx rewrites as
// docs/guides/protect-an-api.md configures it (docs/scope.md: 9728-3).

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as library from 'oauth4webapi';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../free-port.ts';
import { startGrantry } from '../grantry.ts';
import { aResource } from '../oauth/a-resource.ts';
import { succeeds, until } from '../until.ts';

const GUIDE = readFileSync(join(import.meta.dirname, '../../docs/guides/protect-an-api.md'), 'utf8');
const [, REWRITE = ''] = /```nginx\n([\s\S]*?)```/.exec(GUIDE) ?? [];
const INSECURE = { [library.allowInsecureRequests]: true } as const;

const NGINX = ['/usr/sbin/nginx', '/usr/bin/nginx'].find((path) => existsSync(path));

describe.skipIf(NGINX === undefined && process.env.CI !== 'true')('the metadata of an API behind nginx', () => {
  const folder = mkdtempSync(join(tmpdir(), 'resource-discovery-'));
  let nginx: ChildProcess;
  let identifier: URL;
  let issuer: string;

  beforeAll(async () => {
    const port = await freePort();
    identifier = new URL(`http://127.0.0.1:${port}/api`);
    const resource = aResource({ namespace: 'team-a', identifier: identifier.href });
    const grantry = await startGrantry({ clients: [], resources: [resource] });
    issuer = grantry.issuer;
    const file = join(folder, 'nginx.conf');
    writeFileSync(
      file,
      `pid nginx.pid;
error_log stderr;
events {}
http {
  access_log off;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
  server {
    listen 127.0.0.1:${port};
    ${REWRITE.replace('https://id.example.com', issuer)}
  }
}
`,
    );
    nginx = spawn(NGINX ?? 'nginx', ['-p', folder, '-g', 'daemon off; master_process off;', '-c', file], {
      stdio: 'ignore',
    });
    await until('nginx answers', () => succeeds(fetch(identifier)));
  });

  afterAll(async () => {
    nginx.kill('SIGKILL');
    await once(nginx, 'exit');
    rmSync(folder, { recursive: true });
  });

  it('given a rewrite of the well-known path → a document that the strictest client library accepts', async () => {
    const response = await library.resourceDiscoveryRequest(identifier, INSECURE);
    expect(response.url).toBe(`${identifier.origin}/.well-known/oauth-protected-resource/api`);
    const server = await library.processResourceDiscoveryResponse(identifier, response);
    expect(server).toMatchObject({ authorization_servers: [issuer], scopes_supported: ['notes.read', 'notes.write'] });
  });

  it('given the document for another identifier → the library refuses it', async () => {
    const response = await library.resourceDiscoveryRequest(identifier, INSECURE);
    const other = new URL(`${identifier.origin}/other`);
    await expect(library.processResourceDiscoveryResponse(other, response)).rejects.toThrow();
  });
});
