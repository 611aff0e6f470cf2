import { describe, expect, it } from 'vitest';
import { describeFault } from '../../../src/oauth/ports/fault.ts';

class ReplyError extends Error {
  override name = 'ReplyError';
}

describe('what a log says of a fault', () => {
  it('is where it came from, and the first word of each cause', () => {
    const reply = new ReplyError("MISCONF Errors writing to the file of 'secret'");
    const fault = new Error('it failed', { cause: new Error('disconnected', { cause: reply }) });
    const [message, ...others] = describeFault(fault).split('\n');
    expect(message).toBe('Error: it failed');
    expect(others[0]).toContain('fault.test.ts');
    expect(others.slice(-2)).toEqual(['caused by Error: disconnected', 'caused by ReplyError: MISCONF']);
  });

  it.each([
    ['-LOADING secret', 'LOADING'],
    ['secret=1', 'secret'],
    ['"secret" is not valid', 'no word'],
    ['', 'no word'],
  ])('of a cause that says %j is no more than one word', (message, word) => {
    const described = describeFault(new Error('it failed', { cause: new Error(message) }));
    expect(described.split('\n').at(-1)).toBe(`caused by Error: ${word}`);
  });

  it('is that itself where it is no error, and ends where causes go round', () => {
    expect([describeFault('a mere text'), describeFault(undefined)]).toEqual(['a mere text', 'undefined']);
    const fault = new Error('it failed');
    fault.cause = fault;
    expect(describeFault(fault).split('caused by')).toHaveLength(6);
  });
});
