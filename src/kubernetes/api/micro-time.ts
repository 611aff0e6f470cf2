// MicroTime, the time format of Leases and Events: the API server accepts exactly six fractional digits.

/** Epoch milliseconds as a MicroTime. */
export function microTime(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().slice(0, -1)}000Z`;
}
