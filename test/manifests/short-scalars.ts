// Every short text over the characters that numbers are made of.

const CHARACTERS = '+-.0178_exobnfE';

/** Forms that YAML 1.1 or Go reads and YAML 1.2 does not, or reads as something else. */
export const OF_VERSION_1_1 = /_|^[-+]?0[0-7]|^[-+][0-9]?[xo]|^[-+]?0[bBXO]|^[-+]0[xo]|^(n|no|on|off)$/i;

/** All plain scalars of at most so many characters: what is a list, a document's end or nothing at all is left out. */
export function shortScalars(longest: number): readonly string[] {
  let level = [''];
  const all: string[] = [];
  for (let length = 1; length <= longest; length++) {
    level = level.flatMap((text) => [...CHARACTERS].map((character) => text + character));
    all.push(...level);
  }
  return all.filter((text) => !['-', '---', '...'].includes(text));
}
