// Times as Leases and Events have them: exactly six digits behind the second, or the API server refuses the object.

/** Epoch milliseconds as a MicroTime. */
export function microTime(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().slice(0, -1)}000Z`;
}
