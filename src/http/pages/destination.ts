// The destination of an answer to a client, in words that a person can check.

import type { Texts } from './texts.ts';

/** The host of an https address; an address without https may lead to any program, and is named so. */
export function destinationName({ thisComputer, appOnDevice }: Texts['destination'], address: string): string {
  const { protocol, host } = new URL(address);
  if (protocol === 'https:') return host;
  return protocol === 'http:' ? thisComputer(host) : appOnDevice(protocol.slice(0, -1));
}
