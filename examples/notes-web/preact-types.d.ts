// What the types of Auth.js need of Preact (`paths` of tsconfig.json). Preact's own would make every file of this repository one of a
// browser, with `window` and `document`.

export namespace JSX {
  export type Element = object;
}
