// How many objects a list asks for in one page: as many as give pages of a bounded size, whatever size the objects have.

const MOST_OBJECTS = 500;
/** Few: the API server reads a whole page before it sends any of it, and objects may be of a mebibyte each. */
const FIRST_OBJECTS = 32;
const LARGEST_PAGE = 8 * 1024 * 1024;
/** The size that pages are to have. */
const USUAL_PAGE = LARGEST_PAGE / 2;
/** How many times fewer objects the next page has when one was too large: objects may be a thousand times the usual. */
const SHRINK = 8;

/** One for each list, page by page. */
export class PageLimit {
  #objects = FIRST_OBJECTS;

  /** The most objects of the next page. */
  get objects(): number {
    return this.#objects;
  }

  /** The most bytes of the next page; undefined for a single object, which no request can make smaller. */
  get bytes(): number | undefined {
    return this.#objects === 1 ? undefined : LARGEST_PAGE;
  }

  /** A page came. The next one may be twice as long where objects are small. @param bytes its size */
  received(bytes: number): void {
    const fitting = Math.floor((this.#objects * USUAL_PAGE) / Math.max(1, bytes));
    this.#objects = Math.max(1, Math.min(fitting, 2 * this.#objects, MOST_OBJECTS));
  }

  /** A page had more than {@link bytes}. */
  exceeded(): void {
    this.#objects = Math.max(1, Math.floor(this.#objects / SHRINK));
  }
}
