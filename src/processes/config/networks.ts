// A list of addresses and CIDR blocks, as variables have it.

import { isIP, isIPv4 } from 'node:net';
import { z } from 'zod';

/** The schema: separated by commas; neither an empty prefix, nor a zone. */
export const networks = z.string().transform((text, context) => {
  const list = text.split(',').flatMap((entry) => entry.trim() || []);
  for (const entry of list) {
    const fault = networkFault(entry);
    if (fault !== undefined) context.addIssue({ code: 'custom', message: `holds ${entry}, which ${fault}` });
  }
  return list;
});

function networkFault(text: string): string | undefined {
  const [address = '', bits, ...more] = text.split('/');
  const isBlock = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (isIPv4(address) ? 32 : 128));
  if (isIP(address) === 0 || address.includes('%') || more.length > 0 || !isBlock) {
    return 'is neither an address nor a CIDR block';
  }
  // What every address may do needs no list.
  return bits !== undefined && Number(bits) === 0 ? 'is every address: name those that are meant' : undefined;
}
