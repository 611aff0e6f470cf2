// The SigningKey resource: shape, bounds and defaults of one rotating ring. admit-key.ts judges it.

import { z } from 'zod';
import {
  API_VERSION,
  dataKey,
  duration,
  mapOf,
  metadata,
  objectName,
  objectsWith,
  setOf,
  text,
  type UnknownFields,
  wholeManifest,
} from './manifest.ts';

const THUMBPRINT = /^[A-Za-z0-9_-]{43}$/;
const keyId = () => text(43, THUMBPRINT, 'is not a key id: the 43 characters of an RFC 7638 thumbprint');

function signingKey(unknownFields: UnknownFields) {
  const object = objectsWith(unknownFields);
  return wholeManifest(
    object({
      apiVersion: z.literal(API_VERSION),
      kind: z.literal('SigningKey'),
      metadata: metadata(object),
      spec: object({
        algorithm: z.enum(['ES256', 'ES384', 'RS256', 'PS256', 'EdDSA']).default('ES256'),
        rsaModulusBits: z.literal([2048, 3072, 4096]).default(3072),
        suspended: z.boolean().default(false),
        rotation: object({
          policy: z.enum(['Scheduled', 'Manual']).default('Scheduled'),
          interval: duration().default(2160 * 3600),
          prePublish: duration().default(24 * 3600),
          retain: duration().default(48 * 3600),
        }).prefault({}),
        revokedKeyIds: setOf(keyId(), 64).default([]),
        importSecretRef: object({
          name: objectName(),
          key: dataKey().default('tls.key'),
          keyId: keyId().optional(),
        }).optional(),
        secretTemplate: object({
          labels: mapOf(text(63), 32).default({}),
          annotations: mapOf(text(4096), 32).default({}),
        }).prefault({}),
        // Server-side apply drops an empty spec, such as one with a single list that is emptied again.
      }).prefault({}),
      status: z.unknown().optional(),
    }),
  );
}

/** One schema for each treatment of unknown fields. */
export const SIGNING_KEY = { refuse: signingKey('refuse'), ignore: signingKey('ignore') } as const;

/** A well-shaped SigningKey with all defaults filled in. Durations are seconds. */
export type SigningKeyManifest = z.output<(typeof SIGNING_KEY)['ignore']>;
