// Schemas that several files of variables share.

import { isIP, isIPv4 } from 'node:net';
import { z } from 'zod';

/** A TCP port; 0 is any free one. */
export const port = z
  .string()
  .regex(/^\d{1,5}$/, 'is not a port')
  .transform(Number)
  .refine((value) => value <= 65_535, 'is not a port');

/** Addresses and CIDR blocks, separated by commas, of peers that are believed. */
export const networks = z.string().transform((text, context) => {
  const list = text.split(',').flatMap((entry) => entry.trim() || []);
  for (const entry of list) {
    const fault = networkFault(entry);
    if (fault !== undefined) context.addIssue({ code: 'custom', message: `holds ${entry}, which ${fault}` });
  }
  return list;
});

/** Why a text stands for no network whose members may be believed. */
function networkFault(text: string): string | undefined {
  const [address = '', bits, ...more] = text.split('/');
  const isBlock = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (isIPv4(address) ? 32 : 128));
  if (isIP(address) === 0 || more.length > 0 || !isBlock) return 'is neither an address nor a CIDR block';
  // Every caller could then write any address into the header.
  return bits !== undefined && Number(bits) === 0 ? 'is every address: name those of the proxies' : undefined;
}
