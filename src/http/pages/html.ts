// HTML by tagged template. Every value is escaped unless the tag made it, so that no page can omit the escaping.

/** A piece of finished HTML; only the tag {@link html} makes one. */
export class Html {
  readonly #markup: string;

  private constructor(markup: string) {
    this.#markup = markup;
  }

  /** Joins the literal parts with the values, escaped. Callers write the tag {@link html} instead. */
  static fromTemplate(literals: readonly string[], values: readonly HtmlValue[]): Html {
    return new Html(literals.reduce((markup, literal, index) => `${markup}${render(values[index - 1])}${literal}`));
  }

  toString(): string {
    return this.#markup;
  }
}

/** The values of a template; `undefined` and `false` render as nothing. Strings are text or quoted attribute values. */
export type HtmlValue = string | number | Html | undefined | false | readonly HtmlValue[];

/** The template tag: `` html`<p>${text}</p>` ``. Attribute values in templates are always quoted. */
export function html(literals: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  return Html.fromTemplate(literals, values);
}

function render(value: HtmlValue): string {
  if (value === undefined || value === false) return '';
  if (value instanceof Html) return value.toString();
  if (typeof value === 'object') return value.map(render).join('');
  return String(value).replace(/[&<>"'`]/g, (character) => `&#${character.charCodeAt(0)};`);
}
