// What the CustomResourceDefinition of a kind says beside its spec: names, columns of `kubectl get`, status. Every text and
// bound of crds/ stands at a field of this folder; scripts/crds.ts writes the files.

import { z } from 'zod';
import type { Condition } from './conditions.ts';
import { mapListOf, text } from './manifest.ts';

/** A column of `kubectl get`. The last one of every kind is its age. */
interface Column {
  readonly name: string;
  readonly type?: 'integer' | 'date';
  /** 1: only with `-o wide`. */
  readonly priority?: 1;
  readonly jsonPath: string;
  readonly description: string;
}

/** A kind beside its schema, and the schema. */
export interface KindDefinition {
  readonly names: { readonly kind: string; readonly plural: string; readonly shortName: string };
  readonly scope: 'Namespaced' | 'Cluster';
  readonly description: string;
  readonly columns: readonly Column[];
  /** The schema that refuses unknown fields. */
  readonly manifest: z.ZodType;
  /**
   * What the controller writes as a whole. The CRD requires no field of it: a new object has only pending conditions. A
   * function, because no process reads a status by it.
   */
  readonly status: () => z.ZodObject;
  /** The types of the conditions that a new object has, as pending. */
  readonly pending: readonly string[];
}

/** What the controller writes as the status of a kind. */
export type StatusOf<Definition extends KindDefinition> = Omit<
  z.input<ReturnType<Definition['status']>>,
  'conditions'
> & {
  readonly conditions: readonly TimedCondition[];
};

/** A metav1.Condition as it is written. */
export type TimedCondition = Condition & { readonly lastTransitionTime: string };

/** The columns `Ready` and `Reason`. */
export function readyColumns(ready: string, reason: string): readonly Column[] {
  const jsonPath = '.status.conditions[?(@.type=="Ready")]';
  return [
    { name: 'Ready', jsonPath: `${jsonPath}.status`, description: ready },
    { name: 'Reason', jsonPath: `${jsonPath}.reason`, description: reason },
  ];
}

/**
 * A status of what the controller calls `subject`.
 * @param fields all but `observedGeneration`
 */
export const statusOf = <Fields extends z.ZodRawShape>(subject: string, fields: Fields) =>
  z
    .object({
      observedGeneration: counter().describe('The generation of the spec that the status is about.'),
      ...fields,
    })
    .describe(
      `What the controller reports of the ${subject}. Only the controller writes it, and nothing is decided by it.`,
    );

/** A time of a status: RFC 3339. */
export const timeOfStatus = () => z.string().meta({ maxLength: 64, format: 'date-time' });

/** A number of a status that only rises. */
export const counter = () => z.int().min(0).meta({ format: 'int64' });

/** `status.lastHandledRotateAt`. */
export const lastHandledRotateAt = () =>
  text(256).describe(
    'The value of the annotation grantry.dev/rotate-requested-at that was last acted on, in printable ASCII and at most 120 characters of it.',
  );

const CONDITION_TYPE =
  '^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$';

/** `status.conditions`. */
export const conditions = (description: string) => mapListOf('type', condition(), 16).describe(description);

// The bounds of metav1.Condition; its patterns have no sentence, because only the controller writes it.
const condition = () =>
  z
    .object({
      type: text(316).meta({ pattern: CONDITION_TYPE }).describe('What is observed.'),
      status: z.enum(['True', 'False', 'Unknown']).describe('Whether it is so.'),
      observedGeneration: counter().optional().describe('The generation of the spec that this was observed of.'),
      lastTransitionTime: timeOfStatus().describe('When the status last changed.'),
      reason: text(1024)
        .meta({ minLength: 1, pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$' })
        .describe('Why, as one stable word.'),
      message: text(32_768).describe('Why, as a sentence for people.'),
    })
    .describe('One observation (metav1.Condition).');
