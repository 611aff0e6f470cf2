import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { KEY_FAULTS } from '../../src/admission/keys/admit-key.ts';
import {
  ACCEPTED_FAULTS,
  type Condition,
  CREDENTIALS_FAULTS,
  type Fault,
  PROVIDER_FAULTS,
  PROVIDER_SECRET_FAULTS,
  RESOLVED_REFS_FAULTS,
  RESOURCE_FAULTS,
} from '../../src/admission/kinds/conditions.ts';
import { availableMethods } from '../../src/oauth/client-auth/index.ts';
import { admitAll, documentsOf, type WorldSettings } from './world.ts';

const EXAMPLES = join(import.meta.dirname, '../../crds/examples');

function examplesIn(folder: 'valid' | 'invalid') {
  return readdirSync(join(EXAMPLES, folder)).map((file) => ({
    file,
    text: readFileSync(join(EXAMPLES, folder, file), 'utf8'),
  }));
}

const SETTINGS: Readonly<Record<string, WorldSettings>> = {
  'defaultPolicy=Deny': { defaultPolicy: 'Deny' },
  'releaseNamespaceReserved=true': { releaseNamespaceReserved: true },
  'mutualTls=false': { supportedAuthMethods: [...availableMethods({ mutualTls: false }).keys()] },
};

function headOf(text: string) {
  const reason = /^# reason: ([A-Za-z]+)$/m.exec(text)?.[1];
  const setting = /^# setting: (\S+)$/m.exec(text)?.[1];
  const settings = setting === undefined ? {} : SETTINGS[setting];
  if (settings === undefined) throw new Error(`unknown setting ${setting}`);
  return { reason, settings };
}

/** What every kind's verdict has. */
interface AnyVerdict {
  readonly conditions: readonly Condition[];
  readonly faults: readonly Fault<string>[];
}

async function admitText(text: string, settings: WorldSettings = {}) {
  const { clients, policies, keys, resources, providers } = await admitAll(documentsOf(text), settings);
  const verdicts: readonly AnyVerdict[] = [...clients, ...policies, ...keys, ...resources, ...providers];
  return { verdicts, clients, keys, providers };
}

describe('the valid examples', () => {
  it.each(examplesIn('valid'))('$file has no fault and is served unless suspended', async ({ text }) => {
    const { verdicts, clients, keys, providers } = await admitText(text);
    expect(verdicts.flatMap(({ faults }) => faults)).toEqual([]);
    for (const { client, conditions, manifest } of clients) {
      const suspended = manifest?.spec.suspended === true;
      expect(conditions.at(-1)?.reason).toBe(suspended ? 'Suspended' : 'Ready');
      expect(client === undefined).toBe(suspended);
    }
    expect(keys.every(({ accepted }) => accepted)).toBe(true);
    expect(providers.every(({ provider }) => provider?.credentials !== undefined)).toBe(true);
  });

  it('can all be applied to one cluster', async () => {
    const { verdicts } = await admitText(
      examplesIn('valid')
        .map(({ text }) => text)
        .join('---\n'),
    );
    expect(verdicts.length).toBeGreaterThan(30);
    expect(verdicts.flatMap(({ faults }) => faults)).toEqual([]);
  });
});

describe('the invalid examples', () => {
  it.each(examplesIn('invalid'))('$file has its one fault', async ({ text }) => {
    const { reason, settings } = headOf(text);
    const { verdicts } = await admitText(text, settings);
    const faults = verdicts.flatMap((verdict) => verdict.faults);
    expect(faults.map((fault) => fault.reason)).toEqual([reason]);
    const refused = verdicts.filter((verdict) => verdict.faults.length > 0);
    expect(refused.map(({ conditions }) => conditions.at(-1))).toMatchObject([
      { type: 'Ready', status: 'False', reason },
    ]);
  });

  it('show every reason that a manifest alone can have today', () => {
    const shown = new Set(examplesIn('invalid').map(({ text }) => headOf(text).reason));
    // The first needs a key that an example must not hold, nothing has the second; the process that writes Secrets
    // reports the others.
    const unreachable = [
      ...['KeyRevoked', 'SubjectConflict'],
      ...['SecretNotReadable', 'SecretWriteForbidden', 'RotationFailed', 'SecretContested'],
    ];
    const all: readonly string[] = [
      ...[...ACCEPTED_FAULTS, ...RESOLVED_REFS_FAULTS, ...CREDENTIALS_FAULTS],
      ...[...KEY_FAULTS, ...RESOURCE_FAULTS, ...PROVIDER_FAULTS, ...PROVIDER_SECRET_FAULTS],
    ];
    expect(all.filter((reason) => !shown.has(reason) && !unreachable.includes(reason))).toEqual([]);
  });
});
