// grantry as the provider of programs: its real pages, a clock that stands at the time of its start, for programs have their
// own, and TLS in front of it where the issuer needs that.

import { hashPassword, LocalUsers } from '../../../src/login/local-users.ts';
import { fillIn } from '../../clients/person.ts';
import { freePort } from '../../free-port.ts';
import { startGrantry, TestClock } from '../../grantry.ts';
import { type Consumer, PERSON, type Provider } from './provider.ts';
import type { ProviderWishes } from './stand-in-provider.ts';
import { startTlsFront } from './tls-front.ts';

const PASSWORD = 'a password of a test';

/** Starts it on free ports. */
export async function startGrantryProvider({ consumers, tls }: ProviderWishes): Promise<Provider> {
  const clock = new TestClock();
  clock.advance(Date.now() - clock.now());
  const passwordHash = await hashPassword(PASSWORD);
  const { username, name: displayName, email } = PERSON;
  const usersIn = (groups: readonly string[]) => [{ username, displayName, email, groups, passwordHash }];
  const owners = new LocalUsers({ clock, users: usersIn(PERSON.groups) });
  const front = tls && { certificate: tls.certificate, port: await freePort() };
  const grantry = await startGrantry({
    clients: consumers.map(clientOf),
    owners,
    clock,
    ...(front && { issuer: `https://localhost:${front.port}` }),
  });
  const stopFront = front && (await startTlsFront({ ...front, upstream: grantry.port }));
  const { issuer } = grantry;
  return {
    issuer,
    authority: tls?.authority.certificate,
    endpoints: {
      authorization: `${issuer}/authorize`,
      token: `${issuer}/token`,
      userinfo: `${issuer}/userinfo`,
      endSession: `${issuer}/logout`,
    },
    answerTo: (page) => fillIn(page, { username, password: PASSWORD, decision: 'allow' }),
    setGroups: (groups) => owners.replace(usersIn(groups)),
    stop: async () => {
      stopFront?.();
      await grantry.stop();
    },
  };
}

function clientOf({ clientId, secret, redirectUri }: Consumer) {
  return {
    clientId,
    ...(secret !== undefined && { secret }),
    redirectUris: [redirectUri],
    grantTypes: ['authorization_code', 'refresh_token'] as const,
    scopes: ['openid', 'profile', 'email', 'groups', 'offline_access'],
    defaultScopes: [],
  };
}
