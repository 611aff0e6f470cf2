// The names that a person of `users.yaml` may have. Separate from users-yaml.ts, which loads a YAML parser.

import { z } from 'zod';

/** Of a username and an id: 1 to 254 characters without controls, and no white space around them; read as NFC. */
export const usernameSchema = z
  .string()
  .min(1)
  .max(254)
  .refine(
    (value) => value === value.trim() && !/\p{Cc}/u.test(value),
    'has white space around it or control characters',
  )
  .transform((value) => value.normalize('NFC'));
