// The GRANTRY_FETCH_ variables: which addresses of clients a token server connects to. `config.ts` reads them together with all
// others.

import { z } from 'zod';
import { networks } from './networks.ts';

/** The schema of each variable, with its description. */
export const FETCH_VARIABLES = {
  GRANTRY_FETCH_NETWORKS: networks
    .prefault('')
    .describe(
      'Addresses and CIDR blocks, separated by commas, to which a token server may connect for clients beside the public ones, for their key sets (`jwksUri`) and their logout tokens (`backchannelLogoutUri`): those of hosts in the cluster. Empty: none; `grantry dev`: `127.0.0.0/8,::1`. A prefix of length 0 is refused.',
    ),
  GRANTRY_FETCH_CA_FILE: z
    .string()
    .min(1)
    .optional()
    .describe(
      'PEM certificates of authorities that sign those of the hosts of `jwksUri` and `backchannelLogoutUri`, beside the authorities that Node trusts. Read at the start.',
    ),
} as const;

/** Which addresses of clients a token server connects to. */
export interface FetchSettings {
  readonly networks: readonly string[];
  readonly caFile: string | undefined;
}

const shape = z.object(FETCH_VARIABLES);
type Values = Readonly<z.output<typeof shape>>;

/** The settings from the variables. */
export function fetchSettings(values: Values): FetchSettings {
  return { networks: values.GRANTRY_FETCH_NETWORKS, caFile: values.GRANTRY_FETCH_CA_FILE };
}
