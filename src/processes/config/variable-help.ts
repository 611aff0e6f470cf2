// The help text about the variables of the environment.

import { type ConfiguredCommand, variableReference } from './config.ts';

const WIDTH = 100;

/** Each variable of a command with its default and description. */
export function variableHelp(command: ConfiguredCommand): string {
  const entries = variableReference(command).map(({ name, default: text, meaning }) => {
    const value = text === undefined ? '' : ` (default: ${text === '' ? 'empty' : text})`;
    return [`  ${name}${value}`, ...wrapped(meaning.replaceAll('`', ''))].join('\n');
  });
  return `Environment:\n${entries.join('\n')}\n`;
}

function wrapped(text: string): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < WIDTH) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(`      ${word}`);
  }
  return lines;
}
