import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { html } from '../../../src/http/pages/html.ts';

describe('the html tag', () => {
  it('escapes every character that could leave text or a quoted attribute', () => {
    expect(html`<a title="${`"'<>&\``}">${'<script>'}</a>`.toString()).toBe(
      '<a title="&#34;&#39;&#60;&#62;&#38;&#96;">&#60;script&#62;</a>',
    );
  });

  it('leaves no markup of any value', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (value) => {
        expect(html`${value}`.toString()).not.toMatch(/[<>"'`]/);
      }),
    );
  });

  it('joins pieces and lists of its own unescaped', () => {
    expect(html`<ul>${['a', '<b>'].map((item) => html`<li>${item}</li>`)}</ul>`.toString()).toBe(
      '<ul><li>a</li><li>&#60;b&#62;</li></ul>',
    );
  });

  it('writes nothing for undefined and false, and zero for zero', () => {
    expect(html`[${undefined}${false}${0}]`.toString()).toBe('[0]');
  });

  it('does not take an object that looks like markup for its own', () => {
    const forged = JSON.parse('["<b>"]') as readonly string[];
    expect(html`${forged}`.toString()).toBe('&#60;b&#62;');
  });
});
