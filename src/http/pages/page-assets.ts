// The style sheet and the icon, each at a path with a hash of its content: browsers cache them for a year, and a new
// version has another path.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** A file that pages link to. */
export interface PageAsset {
  readonly content: string;
  readonly contentType: string;
  /** Below the issuer's path. */
  readonly path: string;
}

function asset(file: string, contentType: string): PageAsset {
  const content = readFileSync(new URL(file, import.meta.url), 'utf8');
  const [name, extension] = file.replace('./', '').split('.');
  const fingerprint = createHash('sha256').update(content).digest('hex').slice(0, 16);
  return { content, contentType, path: `/assets/${name}.${fingerprint}.${extension}` };
}

export const STYLESHEET = asset('./style.css', 'text/css; charset=utf-8');
export const ICON = asset('./icon.svg', 'image/svg+xml');
