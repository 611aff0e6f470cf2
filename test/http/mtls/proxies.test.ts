// Proxies that terminate mutual TLS and hand on certificates, as docs/guides/mutual-tls.md configures them (security row
// M1): a client is what its own certificate says, whatever headers it sends itself.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../../free-port.ts';
import type { Grantry } from '../../grantry.ts';
import { succeeds, until } from '../../until.ts';
import { claimsOf, MutualTlsWorld } from './mutual-tls-grantry.ts';

const world = new MutualTlsWorld();
const { maker, authority, server } = world;
const job = maker.client(authority, { extensions: ['subjectAltName=DNS:job.team.svc'] });
const other = maker.client(authority, { extensions: ['subjectAltName=DNS:other.team.svc'] });
const CLIENTS = [
  {
    clientId: 'team.job',
    authMethod: 'tls_client_auth',
    certificate: { name: 'sanDns', value: 'job.team.svc' },
    grantTypes: ['client_credentials'],
    senderConstraint: 'MutualTLS',
  },
] as const;

const running: ChildProcess[] = [];

afterAll(async () => {
  for (const child of running) {
    if (child.exitCode !== null) continue;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  maker.remove();
});

/** A proxy: its header, its program, and what it is run with. */
interface Proxy {
  readonly header: string;
  readonly program: string | undefined;
  readonly arguments: (port: number, upstream: number) => readonly string[];
}

const file = (name: string, text: string) => {
  const path = join(maker.folder, name);
  writeFileSync(path, text);
  return path;
};

const installed = (...paths: readonly string[]) => paths.find((path) => existsSync(path));

const PROXIES: Readonly<Record<string, Proxy>> = {
  nginx: {
    header: 'X-SSL-Cert',
    program: installed('/usr/sbin/nginx', '/usr/bin/nginx'),
    arguments: (port, upstream) => [
      ...['-p', maker.folder, '-g', 'daemon off; master_process off;'],
      '-c',
      file(
        'nginx.conf',
        `pid nginx.pid;
error_log stderr;
events {}
http {
  access_log off;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
  server {
    listen 127.0.0.1:${port} ssl;
    ssl_certificate ${server.certificateFile};
    ssl_certificate_key ${server.keyFile};
    ssl_verify_client optional_no_ca;
    location / {
      proxy_pass http://127.0.0.1:${upstream};
      proxy_set_header Host $host;
      proxy_set_header X-SSL-Cert $ssl_client_escaped_cert;
    }
  }
}
`,
      ),
    ],
  },
  HAProxy: {
    header: 'Client-Cert',
    program: installed('/usr/sbin/haproxy', '/usr/bin/haproxy'),
    arguments: (port, upstream) => [
      '-db',
      '-f',
      file(
        'haproxy.cfg',
        `defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend clients
  bind 127.0.0.1:${port} ssl crt ${file('server.pem', `${server.certificate}${server.key}`)} ca-file ${authority.certificateFile} verify optional crt-ignore-err all
  http-request del-header Client-Cert
  http-request set-header Client-Cert :%[ssl_c_der,base64]: if { ssl_c_used }
  default_backend grantry
backend grantry
  server grantry 127.0.0.1:${upstream}
`,
      ),
    ],
  },
  Envoy: {
    header: 'X-Forwarded-Client-Cert',
    program: envoyProgram(),
    arguments: (port, upstream) => [
      ...['--concurrency', '1', '--disable-hot-restart', '--log-level', 'error', '-c'],
      file('envoy.json', JSON.stringify(envoyConfiguration(port, upstream))),
    ],
  },
};

/** Envoy comes as a package of Python, which may be installed without being on the PATH. */
function envoyProgram(): string | undefined {
  const found = spawnSync(process.execPath, [join(import.meta.dirname, '../../../scripts/assets/envoy-assets.mjs')], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const path = found.stdout.trim();
  return path === '' ? undefined : path;
}

function envoyConfiguration(port: number, upstream: number): object {
  const address = (port_value: number) => ({ socket_address: { address: '127.0.0.1', port_value } });
  const type = (name: string) => `type.googleapis.com/envoy.extensions.${name}`;
  const tls = {
    '@type': type('transport_sockets.tls.v3.DownstreamTlsContext'),
    common_tls_context: {
      tls_certificates: [
        { certificate_chain: { filename: server.certificateFile }, private_key: { filename: server.keyFile } },
      ],
      validation_context: {
        trusted_ca: { filename: authority.certificateFile },
        trust_chain_verification: 'ACCEPT_UNTRUSTED',
      },
    },
  };
  const manager = {
    '@type': type('filters.network.http_connection_manager.v3.HttpConnectionManager'),
    stat_prefix: 'clients',
    forward_client_cert_details: 'SANITIZE_SET',
    set_current_client_cert_details: { cert: true },
    route_config: {
      virtual_hosts: [
        { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, route: { cluster: 'grantry' } }] },
      ],
    },
    http_filters: [
      { name: 'envoy.filters.http.router', typed_config: { '@type': type('filters.http.router.v3.Router') } },
    ],
  };
  return {
    static_resources: {
      listeners: [
        {
          address: address(port),
          filter_chains: [
            {
              filters: [{ name: 'envoy.filters.network.http_connection_manager', typed_config: manager }],
              transport_socket: { name: 'envoy.transport_sockets.tls', typed_config: tls },
            },
          ],
        },
      ],
      clusters: [
        {
          name: 'grantry',
          load_assignment: {
            cluster_name: 'grantry',
            endpoints: [{ lb_endpoints: [{ endpoint: { address: address(upstream) } }] }],
          },
        },
      ],
    },
  };
}

/** The lines of the guide about a proxy. */
function linesOfGuide(language: string): readonly string[] {
  const guide = readFileSync(new URL('../../../docs/guides/mutual-tls.md', import.meta.url), 'utf8');
  const block = new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 's').exec(guide)?.[1] ?? '';
  return block.split('\n').filter((line) => line !== '');
}

describe('the guide', () => {
  it('configures the proxies as they are tried here', () => {
    for (const [name, language] of [
      ['nginx', 'nginx'],
      ['HAProxy', 'haproxy'],
    ] as const) {
      const path = PROXIES[name]?.arguments(1, 2).at(-1) ?? '';
      const tried = readFileSync(path, 'utf8')
        .split('\n')
        .map((line) => line.trim());
      expect(tried).toEqual(expect.arrayContaining([...linesOfGuide(language)]));
      expect(linesOfGuide(language)).toHaveLength(2);
    }
    const [details = '{}'] = linesOfGuide('json');
    expect(JSON.stringify(envoyConfiguration(1, 2))).toContain(JSON.stringify(JSON.parse(details)).slice(1, -1));
  });
});

describe.each(Object.entries(PROXIES))('behind %s', (_, proxy) => {
  if (proxy.program === undefined && process.env.CI !== 'true') {
    it.skip('is not installed', () => {});
    return;
  }
  let grantry: Grantry;
  let port: number;

  beforeAll(async () => {
    const header = { name: proxy.header.toLowerCase(), proxies: ['127.0.0.1'] };
    ({ grantry } = await world.start({ clients: CLIENTS }, { listener: undefined, header }));
    port = await freePort();
    const child = spawn(proxy.program ?? '', [...proxy.arguments(port, grantry.port)], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    running.push(child);
    await until('the proxy answers', () => succeeds(ask()), 20_000);
  });

  function ask(certificate?: typeof job, headers: Readonly<Record<string, string>> = {}) {
    const form = new URLSearchParams({ grant_type: 'client_credentials', client_id: 'team.job' }).toString();
    const own = certificate && { cert: certificate.certificate, key: certificate.key };
    const options = {
      host: '127.0.0.1',
      port,
      path: '/token',
      method: 'POST',
      rejectUnauthorized: false,
      agent: false,
      ...own,
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    };
    return new Promise<{ status: number | undefined; body: Record<string, string> }>((resolve, reject) => {
      const sent = request(options, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk) => chunks.push(chunk));
        response.on('end', () => {
          resolve({ status: response.statusCode, body: JSON.parse(Buffer.concat(chunks).toString()) });
        });
      });
      sent.on('error', reject);
      sent.end(form);
    });
  }

  const reason = () => grantry.audits().findLast(({ event }) => event === 'token.refused')?.reason;
  const forged = () => ({
    [proxy.header]:
      {
        'Client-Cert': `:${job.der.toString('base64')}:`,
        'X-Forwarded-Client-Cert': `Cert="${encodeURIComponent(job.certificate)}"`,
      }[proxy.header] ?? encodeURIComponent(job.certificate),
  });

  it('given the certificate of a client → tokens that are bound to it', async () => {
    const { status, body } = await ask(job);
    expect(status).toBe(200);
    expect(claimsOf(body.access_token ?? '')).toHaveProperty('cnf');
  });

  it('given no certificate → 401', async () => {
    expect((await ask()).status).toBe(401);
    expect(reason()).toBe('certificate_missing');
  });

  it('given the certificate of a client in a header that the caller sends → 401', async () => {
    expect((await ask(undefined, forged())).status).toBe(401);
    expect(reason()).toBe('certificate_missing');
    expect(
      (await ask(undefined, { [proxy.header.replaceAll('-', '_')]: Object.values(forged())[0] ?? '' })).status,
    ).toBe(401);
  });

  it('given another certificate and that header → 401: the certificate counts', async () => {
    expect((await ask(other, forged())).status).toBe(401);
    expect(reason()).toBe('certificate_name_mismatch');
  });

  it('given an impostor of the authority → 401', async () => {
    const impostor = maker.client(maker.authority(), { extensions: ['subjectAltName=DNS:job.team.svc'] });
    const answer = await ask(impostor).catch(() => undefined);
    expect(answer === undefined || answer.status === 401).toBe(true);
  });
});
