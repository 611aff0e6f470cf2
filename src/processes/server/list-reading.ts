// Reads the text of a list of users; the YAML parser is loaded with the first one.

import { UsersFileError } from '../../login/local/local-users.ts';
import type { ListReading } from '../../login/local/user-lists.ts';

/** The entries of a list, or its fault. */
export async function readList(text: string): Promise<ListReading> {
  const { parseUsers } = await import('../../login/local/users-yaml.ts');
  try {
    return parseUsers(text);
  } catch (error) {
    if (error instanceof UsersFileError) return error;
    throw error;
  }
}

/** Where a list has its fault, such as `users[1].passwordHash`: it has no text of the list. */
export function placeOfFault({ path }: UsersFileError): string {
  return `users${path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`)).join('')}`;
}
