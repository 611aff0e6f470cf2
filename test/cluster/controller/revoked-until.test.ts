// The condition about a `revokeTokensBefore` in the future, on a real API server.

import { expect, it } from 'vitest';
import { until } from '../../until.ts';
import { ClientInstall } from '../setup/client-controllers.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';

const cluster = sharedCluster();

it('a client whose revokeTokensBefore is two seconds ahead → RevokedUntil beside Ready, and gone by itself', async () => {
  const install = await ClientInstall.make(cluster);
  const team = await cluster.namespace();
  await install.start();
  await install.apply(team, 'ahead', { revokeTokensBefore: new Date(install.clock.now() + 2000).toISOString() });
  const { status } = await install.whenCondition(team, 'ahead', 'RevokedUntil', 'RevokeTokensBeforeInFuture');
  expect(status.conditions).toContainEqual(expect.objectContaining({ type: 'RevokedUntil', status: 'True' }));
  await install.whenReady(team, 'ahead');
  await until('the time has come', async () => {
    const { conditions } = (await install.client(team, 'ahead')).status;
    return !conditions.some(({ type }: Record<string, string>) => type === 'RevokedUntil');
  });
});
