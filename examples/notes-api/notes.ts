// The notes of people, in memory: they end with the process.

/** One note. */
export interface Note {
  readonly id: number;
  readonly text: string;
  /** ISO 8601. */
  readonly created: string;
}

const NOTES_MOST = 1000;

/** The notes of all people, each person's apart. */
export class Notes {
  readonly #ofOwner = new Map<string, Note[]>();

  /** The notes of a person, oldest first. @param owner the subject of an access token */
  of(owner: string): readonly Note[] {
    return this.#ofOwner.get(owner) ?? [];
  }

  /** Adds a note to those of a person. @returns undefined where the person has 1 000 of them */
  add(owner: string, text: string): Note | undefined {
    const notes = this.#ofOwner.get(owner) ?? [];
    if (notes.length >= NOTES_MOST) return undefined;
    const note = { id: notes.length + 1, text, created: new Date().toISOString() };
    this.#ofOwner.set(owner, [...notes, note]);
    return note;
  }
}
