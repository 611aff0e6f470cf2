// The pages, without script. What a value holds is text, never markup.

import type { Note } from '../notes-api/notes.ts';

/** Text that is markup already. */
class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

function html(parts: TemplateStringsArray, ...values: readonly (string | Html | readonly Html[])[]): Html {
  const written = values.map((value) => {
    if (typeof value === 'string') return value.replaceAll(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
    return value instanceof Html ? value.text : value.map(({ text }) => text).join('');
  });
  return new Html(String.raw({ raw: parts }, ...written));
}

function page(title: string, content: Html): string {
  return html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title}</title>
<style>:root { color-scheme: light dark } body { font: 1rem/1.5 system-ui; max-width: 40rem; margin: 2rem auto; padding: 0 1rem }</style>
<main>
<h1>${title}</h1>
${content}
</main>
</html>
`.text;
}

/** The page of a person who is not signed in. @param action where the sign-in begins */
export function welcomePage(action: string): string {
  return page('Notes on the web', signInForm(action));
}

/** The page of a sign-in that came to nothing. @param reason a sentence for the person */
export function problemPage(reason: string, action: string): string {
  return page('You are not signed in', html`<p>${reason}</p>${signInForm(action)}`);
}

export function notesPage(name: string, notes: readonly Note[]): string {
  return page(
    `Notes of ${name}`,
    html`<ul>${notes.map(({ text }) => html`<li>${text}</li>`)}</ul>
<form method="post" action="/notes"><label>A new note <input name="text" required maxlength="2000"></label> <button>Add</button></form>
<form method="post" action="/sign-out"><button>Sign out</button></form>`,
  );
}

/** The page in place of one that the application could not make. */
export function failurePage(reason: string): string {
  return page('Something went wrong', html`<p>${reason}</p><p><a href="/">Try again</a></p>`);
}

function signInForm(action: string): Html {
  return html`<form method="post" action="${action}"><button>Sign in</button></form>`;
}
