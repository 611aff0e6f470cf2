// Values that cannot work are refused before anything is installed, with a sentence that names what to set.

import { expect, it } from 'vitest';
import { CHART, HELMS, helm, MINIMAL } from './helm.ts';

const DEV_REDIS = ['--set', 'redis.dev.enabled=true'];
const ISSUER = ['--set', 'issuer=https://id.example.com'];
const PROXIES = ['set config.trustedProxies', 'config.trustedProxies=none', 'config.rateLimits=false'];

it.each<[string, readonly string[], readonly string[]]>([
  ['no issuer', DEV_REDIS, ['issuer']],
  [
    'an issuer of http that is not on loopback',
    [...DEV_REDIS, '--set', 'issuer=http://id.example.com/a'],
    ['issuer', 'https://id.example.com/a'],
  ],
  [
    'an issuer of http on a host that only begins like loopback',
    [...DEV_REDIS, '--set', 'issuer=http://localhost.example'],
    ['issuer'],
  ],
  ['an issuer that is no address', [...DEV_REDIS, '--set', 'issuer=id.example.com'], ['issuer']],
  ['an issuer with a slash at its end', [...DEV_REDIS, '--set', 'issuer=https://id.example.com/'], ['issuer']],
  ['an issuer with a user', [...DEV_REDIS, '--set', 'issuer=https://a:b@id.example.com'], ['issuer']],
  ['an issuer with a query', [...DEV_REDIS, '--set', 'issuer=https://id.example.com?a=b'], ['issuer']],
  ['an issuer with a fragment', [...DEV_REDIS, '--set', 'issuer=https://id.example.com#a'], ['issuer']],
  ['an issuer in capitals', [...DEV_REDIS, '--set', 'issuer=https://ID.example.com'], ['issuer']],
  ['an issuer with the usual port', [...DEV_REDIS, '--set', 'issuer=https://id.example.com:443/a'], ['issuer']],
  [
    'an issuer that no parser takes, with an Ingress for it',
    [...DEV_REDIS, '--set', 'ingress.enabled=true', '--set', 'issuer=https://[::1'],
    ['set issuer to'],
  ],
  [
    'an issuer with a path that would be more than a path in a manifest',
    [...DEV_REDIS, '--set', 'ingress.enabled=true', '--set', 'issuer=https://id.example.com/a: b'],
    ['set issuer to'],
  ],
  [
    'the user of Redis from no Secret',
    [...ISSUER, '--set', 'redis.url=redis://a,redis.usernameKey=b'],
    ['redis.existingSecret'],
  ],
  [
    'two users of Redis',
    [...ISSUER, '--set', 'redis.url=redis://a,redis.username=a,redis.usernameKey=b,redis.existingSecret=c'],
    ['redis.username', 'redis.usernameKey'],
  ],
  [
    'the password of Sentinels from no Secret',
    [...ISSUER, '--set', 'redis.url=redis+sentinel://a/primary,redis.sentinelPasswordKey=b'],
    ['redis.existingSecret'],
  ],
  [
    'a certificate from no Secret',
    [...ISSUER, '--set', 'redis.url=rediss://a,redis.tls.certificateKey=b,redis.tls.keyKey=c'],
    ['redis.tls.existingSecret'],
  ],
  ['an order of the login page that there is not', [...MINIMAL, '--set', 'signIn.order=users-first'], ['order']],
  ['a brand of two lines', [...MINIMAL, '--set-json', 'branding.name="a\\nb"'], ['name']],
  [
    'a logo from a ConfigMap that no name is',
    [...MINIMAL, '--set', 'branding.logo.existingConfigMap=A_b'],
    ['existingConfigMap'],
  ],
  ['an accent colour by its name', [...MINIMAL, '--set', 'branding.accentColor=teal'], ['accentColor']],
  [
    'an accent colour for one scheme',
    [...MINIMAL, '--set', 'branding.accentColorDark=#a8c7fa'],
    ['branding.accentColor', 'branding.accentColorDark'],
  ],
  ['help that is a script', [...MINIMAL, '--set', 'branding.help.url=javascript:a,branding.help.text=a'], ['url']],
  ['help of two lines', [...MINIMAL, '--set-json', 'branding.help.text="a\\nb"'], ['text']],
  ['help without a text', [...MINIMAL, '--set', 'branding.help.url=mailto:a@b.example'], ['branding.help.text']],
  ['a footer that is a word', [...MINIMAL, '--set', 'branding.footer=off'], ['footer']],
  ['a webhook with a password', [...MINIMAL, '--set', 'webhook.url=https://a:b@siem.example.com'], ['url']],
  ['a webhook without TLS', [...MINIMAL, '--set', 'webhook.url=http://siem.example.com/a'], ['url']],
  [
    'certificates of clients without an address for them',
    [...MINIMAL, '--set', 'mtls.clientCa.existingSecret=a'],
    ['mtls.url'],
  ],
  [
    'mutual TLS by which no certificate can arrive',
    [...MINIMAL, '--set', 'mtls.url=https://mtls.example.com'],
    ['mtls.listener.existingSecret', 'mtls.header.name'],
  ],
  [
    'a header of no proxy',
    [...MINIMAL, '--set', 'mtls.url=https://mtls.example.com,mtls.header.name=Client-Cert,networkPolicy.from[0].a=b'],
    ['mtls.header.proxies'],
  ],
  [
    'a header that any pod could write',
    [
      ...MINIMAL,
      '--set',
      'mtls.url=https://mtls.example.com,mtls.header.name=Client-Cert,mtls.header.proxies={10.0.0.0/8}',
    ],
    ['networkPolicy.from', 'networkPolicy.enabled=false'],
  ],
  ['mutual TLS below a path', [...MINIMAL, '--set', 'mtls.url=https://mtls.example.com/a'], ['url']],
  [
    'the public port for mutual TLS',
    [...MINIMAL, '--set', 'mtls.url=https://m.example.com,mtls.listener.existingSecret=a,mtls.listener.port=9400'],
    ['mtls.listener.port'],
  ],
  ['one port for two', [...MINIMAL, '--set', 'config.port=9401'], ['config.adminPort']],
  ['the release namespace among those with clients', [...MINIMAL, '--set', 'watchNamespaces={default}'], ['default']],
  ['a test in the release namespace', [...MINIMAL, '--set', 'tests.namespace=default'], ['tests.namespace']],
  ['no Redis', ISSUER, ['redis.url', 'redis.dev.enabled']],
  ['two Redis', [...MINIMAL, '--set', 'redis.url=redis://redis:6379'], ['redis.url', 'redis.dev.enabled']],
  ['a user of redis.dev', [...MINIMAL, '--set', 'redis.username=a'], ['redis.username', 'redis.dev.enabled']],
  ['a password in the address of Redis', [...ISSUER, '--set', 'redis.url=redis://a:b@redis'], ['url']],
  [
    'an autoscaler and a number of servers',
    [...MINIMAL, '--set', 'server.autoscaling.enabled=true,server.replicas=2'],
    ['server.replicas', 'server.autoscaling.enabled'],
  ],
  [
    'an autoscaler whose least is more than its most',
    [...MINIMAL, '--set', 'server.autoscaling.enabled=true,server.autoscaling.minReplicas=11'],
    ['set server.autoscaling.maxReplicas to at least 11'],
  ],
  [
    'an Ingress with limits and no proxy',
    [...MINIMAL, '--set', 'ingress.enabled=true'],
    ['ingress.enabled', ...PROXIES],
  ],
  [
    'an HTTPRoute with limits and no proxy',
    [...MINIMAL, '--set', 'httpRoute.enabled=true,httpRoute.parentRefs[0].name=public'],
    ['httpRoute.enabled', ...PROXIES],
  ],
  [
    'a load balancer with limits and no proxy',
    [...MINIMAL, '--set', 'service.type=LoadBalancer'],
    ['service.type=LoadBalancer', ...PROXIES],
  ],
  [
    'a proxy that any pod can pose as',
    [...MINIMAL, '--set', 'config.trustedProxies={10.42.0.0/16}'],
    ['set networkPolicy.from', 'networkPolicy.enabled=false'],
  ],
  ['every address as a proxy', [...MINIMAL, '--set', 'config.trustedProxies={0.0.0.0/0}'], ['trustedProxies']],
  ['a word for proxies that is not none', [...MINIMAL, '--set', 'config.trustedProxies=any'], ['trustedProxies']],
  [
    'a ServiceAccount of others without a name',
    [...MINIMAL, '--set', 'server.serviceAccount.create=false'],
    ['set server.serviceAccount.name'],
  ],
  [
    'one ServiceAccount for both programs',
    [...MINIMAL, '--set', 'server.serviceAccount.name=a,controller.serviceAccount.name=a'],
    ['server.serviceAccount.name', 'controller.serviceAccount.name'],
  ],
  [
    'a common label that the chart sets itself',
    [...MINIMAL, '--set-json', 'commonLabels={"app.kubernetes.io/name":"a"}'],
    ['commonLabels', 'app.kubernetes.io/name'],
  ],
  [
    'a first user beside a file with all users',
    [...MINIMAL, '--set', 'users.initialUser=ada,users.existingSecret=people'],
    ['users.initialUser', 'users.existingSecret'],
  ],
  ['a first user with white space around', [...MINIMAL, '--set', 'users.initialUser=ada '], ['initialUser']],
  ['a first user whose name is a number', [...MINIMAL, '--set', 'users.initialUser=7'], ['initialUser']],
  ['a webhook secret without a webhook', [...MINIMAL, '--set', 'webhook.existingSecret=a'], ['webhook.url']],
  [
    'half of a pair of certificate and key',
    [...ISSUER, '--set', 'redis.url=rediss://redis,redis.tls.existingSecret=a,redis.tls.keyKey=b'],
    ['redis.tls.certificateKey'],
  ],
  [
    'TLS for a Redis that is spoken to without',
    [...ISSUER, '--set', 'redis.url=redis://redis,redis.tls.existingSecret=a'],
    ['rediss'],
  ],
  ['an HTTPRoute of no Gateway', [...MINIMAL, '--set', 'httpRoute.enabled=true'], ['httpRoute.parentRefs']],
  [
    'a test in a namespace that is not watched',
    [...MINIMAL, '--set', 'watchNamespaces={shop},tests.namespace=bank'],
    ['tests.namespace'],
  ],
  [
    'a drain that outlasts the pod',
    [...MINIMAL, '--set', 'config.drainDelay=30s'],
    ['server.terminationGracePeriodSeconds'],
  ],
  ['a value that does not exist', [...MINIMAL, '--set', 'config.logLevle=debug'], ['logLevle']],
  ['a log level that does not exist', [...MINIMAL, '--set', 'config.logLevel=loud'], ['logLevel']],
  [
    'a setting of grantry among the further variables',
    [...MINIMAL, '--set', 'server.extraEnv[0].name=GRANTRY_PORT'],
    ['extraEnv'],
  ],
])('%s is refused', async (_, args, named) => {
  for (const name of HELMS) {
    const { code, errors } = await helm(name, ['template', 'grantry', CHART, ...args]);
    expect(code).not.toBe(0);
    for (const value of named) expect(errors).toContain(value);
  }
});

it.each([
  ['an Ingress behind which every address is real', 'ingress.enabled=true,config.trustedProxies=none'],
  ['an Ingress without limits', 'ingress.enabled=true,config.rateLimits=false'],
  ['a load balancer that keeps addresses', 'service.type=LoadBalancer,config.trustedProxies=none'],
  ['a proxy where something else keeps pods out', 'config.trustedProxies={10.42.0.0/16},networkPolicy.enabled=false'],
  [
    'a proxy that alone may connect',
    'config.trustedProxies={10.42.0.0/16},networkPolicy.from[0].podSelector.matchLabels.app=nginx',
  ],
])('%s is accepted', async (_, values) => {
  const { code, errors } = await helm('helm-4.1', ['template', 'grantry', CHART, ...MINIMAL, '--set', values]);
  expect([code, errors]).toEqual([0, '']);
});

it.each([
  ['grant.ry', 'without a dot'],
  ['1', 'fullnameOverride'],
])('a release called %s is refused', async (release, named) => {
  const { code, errors } = await helm('helm-4.1', ['template', release, CHART, ...MINIMAL]);
  expect([code, errors]).toEqual([1, expect.stringContaining(named)]);
});

it.each(['http://localhost:9400', 'http://127.0.0.1:9400', 'http://[::1]:9400', 'https://id.example.com/auth'])(
  'the issuer %s is accepted',
  async (issuer) => {
    const { code } = await helm('helm-4.1', ['template', 'grantry', CHART, ...DEV_REDIS, '--set', `issuer=${issuer}`]);
    expect(code).toBe(0);
  },
);
