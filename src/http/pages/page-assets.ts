// The style sheet, the icon and the logo of the operators, each at a path with a hash of its content: browsers cache them for a year, and a new
// version has another path.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** A file that pages link to. */
export interface PageAsset {
  readonly content: string | Buffer;
  readonly contentType: string;
  /** Below the issuer's path. */
  readonly path: string;
}

/** The asset with this content. @param file its name, from which the path is made */
export function pageAsset(file: string, contentType: string, content: string | Buffer): PageAsset {
  const [name, extension] = file.split('.');
  const fingerprint = createHash('sha256').update(content).digest('hex').slice(0, 16);
  return { content, contentType, path: `/assets/${name}.${fingerprint}.${extension}` };
}

function asset(file: string, contentType: string): PageAsset {
  return pageAsset(file, contentType, readFileSync(new URL(`./${file}`, import.meta.url), 'utf8'));
}

export const STYLESHEET = asset('style.css', 'text/css; charset=utf-8');
export const ICON = asset('icon.svg', 'image/svg+xml');
