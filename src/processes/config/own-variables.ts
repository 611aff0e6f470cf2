// Selects the variables of grantry from an environment.

import { closest } from 'fastest-levenshtein';

/**
 * The GRANTRY_ variables of an environment. A misspelt one is a fault; an injected service link is ignored.
 * @param names all known variables
 */
export function ownVariables(
  environment: Readonly<Record<string, string | undefined>>,
  names: readonly string[],
): { readonly texts: Readonly<Record<string, string | undefined>>; readonly faults: readonly string[] } {
  const set = Object.entries(environment).filter(
    ([name, value]) => name.startsWith('GRANTRY_') && value !== undefined && !isServiceLink(name, value),
  );
  const isKnown = (name: string) => names.includes(name);
  return {
    texts: Object.fromEntries(set.filter(([name]) => isKnown(name))),
    faults: set
      .filter(([name]) => !isKnown(name))
      .map(([name]) => `${name} is not a setting; did you mean ${closest(name, names)}?`),
  };
}

/** Whether Kubernetes sets this variable in a pod for a Service of its namespace; one may be named `grantry`. */
function isServiceLink(name: string, value: string): boolean {
  return (
    /_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)$/.test(name) ||
    /_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$/.test(name) ||
    (name.endsWith('_PORT') && /^(tcp|udp|sctp):\/\//.test(value))
  );
}
