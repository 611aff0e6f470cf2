// The SigningKey resource: fields, bounds and defaults of one rotating ring. admit-key.ts validates it.

import { z } from 'zod';
import {
  conditions,
  type KindDefinition,
  lastHandledRotateAt,
  readyColumns,
  type StatusOf,
  statusOf,
  timeOfStatus,
} from './crd.ts';
import {
  cel,
  dataKey,
  duration,
  isNoDuration,
  type MakeObject,
  manifestOf,
  mapListOf,
  objectName,
  objectsWith,
  secretTemplate,
  setOf,
  text,
  type UnknownFields,
  within,
} from './manifest.ts';

const THUMBPRINT = /^[A-Za-z0-9_-]{43}$/;
const keyId = () => text(43, THUMBPRINT, 'is not a key id: the 43 characters of an RFC 7638 thumbprint');

const rotation = (object: MakeObject) =>
  object({
    policy: z
      .enum(['Scheduled', 'Manual'])
      .default('Scheduled')
      .describe(
        'Scheduled: by interval. Manual: only when it is asked for by the annotation grantry.dev/rotate-requested-at.',
      ),
    interval: duration().prefault('2160h').describe('How long a key signs before the next one does.'),
    prePublish: duration()
      .prefault('24h')
      .meta(within({ least: '10m' }))
      .describe('How long a key is published before it signs, 10m at least: key sets are cached.'),
    retain: duration()
      .prefault('48h')
      .meta(within({ least: '24h' }))
      .describe('How long a key verifies after it signed, 24h at least: as long as the longest token lives.'),
  }).meta(
    cel(
      `!has(self.interval) || !has(self.prePublish) || ${isNoDuration('self.interval')} || ${isNoDuration('self.prePublish')} || duration(self.interval) > duration(self.prePublish)`,
      'interval must be longer than prePublish',
    ),
  );

const importSecretRef = (object: MakeObject) =>
  object({
    name: objectName().describe('The name of the Secret.'),
    key: dataKey().default('tls.key').describe('Where the Secret has the key: PKCS #8 in PEM, fitting the algorithm.'),
    keyId: keyId().optional().describe('The RFC 7638 thumbprint that the key must have.'),
  });

const spec = (object: MakeObject) =>
  object({
    algorithm: z
      .enum(['ES256', 'ES384', 'RS256', 'PS256', 'EdDSA'])
      .default('ES256')
      .describe(
        'What the ring signs with. Another one makes a new key; the old one goes on verifying until its last token has expired.',
      ),
    rsaModulusBits: z.literal([2048, 3072, 4096]).default(3072).describe('The size of new keys of RS256 and PS256.'),
    suspended: z
      .boolean()
      .default(false)
      .describe(
        'A suspended ring neither signs nor is published; while it is suspended, the tokens that it signed are rejected.',
      ),
    rotation: rotation(object)
      .prefault({})
      .describe(
        'When the signing key is replaced. The next key is published first, signs once every server and every cache has it, and verifies until its last token has expired. In grantry dev a new key signs at once, without prePublish.',
      ),
    revokedKeyIds: setOf(keyId(), 64)
      .default([])
      .describe(
        'Keys that are withdrawn at once, by key id, of whichever SigningKey. A revoked key that signs is replaced.',
      ),
    importSecretRef: importSecretRef(object)
      .optional()
      .describe(
        'A private key made elsewhere, in a Secret of the same namespace. Without it the key is generated. A key that an older SigningKey publishes is refused (DuplicateKeyMaterial).',
      ),
    secretTemplate: secretTemplate(object).describe(
      'Labels and annotations for the Secrets of the keys. Those of Kubernetes, Helm, Argo and grantry are reserved; app.kubernetes.io/ is not.',
    ),
  });

function signingKey(unknownFields: UnknownFields) {
  const object = objectsWith(unknownFields);
  // Server-side apply drops an empty spec, such as one with a single list that is emptied again.
  return manifestOf(
    object,
    'SigningKey',
    spec(object).prefault({}).describe('What the keys are and when they change.'),
  );
}

/** One schema for each treatment of unknown fields. */
export const SIGNING_KEY = { refuse: signingKey('refuse'), ignore: signingKey('ignore') } as const;

/** A well-shaped SigningKey with all defaults filled in. Durations are seconds. */
export type SigningKeyManifest = z.output<(typeof SIGNING_KEY)['ignore']>;

const keyOfStatus = () =>
  z
    .object({
      keyId: text(43).describe('Its RFC 7638 thumbprint.'),
      algorithm: text(16).optional().describe('What it signs with.'),
      state: z
        .enum(['Published', 'Active', 'Retiring', 'Revoked'])
        .optional()
        .describe(
          'Published: seen by all and not signing yet. Active: signs. Retiring: verifies only. Revoked: withdrawn.',
        ),
      secretName: text(253).optional().describe('The Secret that it is kept in.'),
      publishedAt: timeOfStatus().optional().describe('When it was published.'),
      activatedAt: timeOfStatus().optional().describe('When it began to sign.'),
      removeAfter: timeOfStatus().optional().describe('When it is removed.'),
    })
    .describe('One key.');

/** What crds/signingkeys.yaml is made of. */
export const SIGNING_KEY_CRD = {
  names: { kind: 'SigningKey', plural: 'signingkeys', shortName: 'skey' },
  scope: 'Namespaced',
  description:
    'A ring of keys of one algorithm that tokens are signed with. It is accepted only in the namespace that grantry runs in. Without any, an ES256 ring is made. Of several rings the newest one with ES256 signs, else the newest.',
  columns: [
    { name: 'Algorithm', jsonPath: '.spec.algorithm', description: 'What the ring signs with.' },
    { name: 'Active-Key', jsonPath: '.status.activeKeyId', description: 'The key that signs.' },
    ...readyColumns('Whether the ring signs.', 'Why it does not.'),
    { name: 'Next-Rotation', jsonPath: '.status.nextRotationTime', description: 'When the next key signs.' },
  ],
  manifest: SIGNING_KEY.refuse,
  status: () =>
    statusOf('ring', {
      activeKeyId: text(43).optional().describe('The key that signs.'),
      lastRotationTime: timeOfStatus().optional().describe('When the active key began to sign.'),
      nextRotationTime: timeOfStatus().optional().describe('When the next key begins to sign.'),
      lastHandledRotateAt: lastHandledRotateAt().optional(),
      conditions: conditions(
        'KeyMaterialReady, Rotating and, computed from the first, Ready; Stalled when the owner must act.',
      ),
      keys: mapListOf('keyId', keyOfStatus(), 100).describe('Every key of the ring that still is somewhere.'),
    }),
  pending: ['KeyMaterialReady', 'Ready'],
} as const satisfies KindDefinition;

/** What the controller reports of a ring. */
export type SigningKeyStatus = StatusOf<typeof SIGNING_KEY_CRD>;
