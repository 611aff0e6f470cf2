// A TCP port, as variables have it.

import { z } from 'zod';

/** The schema; 0 is any free port. */
export const port = z
  .string()
  .regex(/^\d{1,5}$/, 'is not a port')
  .transform(Number)
  .refine((value) => value <= 65_535, 'is not a port');
