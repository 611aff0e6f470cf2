// The system's Chromium, driven by playwright-core. A machine without one skips these tests by name; a CI run fails.

import { accessSync, constants, mkdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome'];

/** The folder of the screenshots, for people to view. */
export const SCREENSHOTS = new URL('../../test-results/screenshots/', import.meta.url).pathname;

function findChromium(): string | undefined {
  if (process.env.CHROMIUM_PATH) return process.env.CHROMIUM_PATH;
  const folders = (process.env.PATH ?? '').split(delimiter);
  return folders.flatMap((folder) => NAMES.map((name) => join(folder, name))).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

const executablePath = findChromium();

/** Whether to skip: never in CI, where a missing program is a failure. */
export const NO_CHROMIUM = executablePath === undefined && process.env.CI !== 'true';

/** A browser with a profile of its own, gone when it is closed. */
export async function launchChromium(): Promise<Browser> {
  if (executablePath === undefined) throw new Error('no chromium on PATH: install it, or name it in CHROMIUM_PATH');
  mkdirSync(SCREENSHOTS, { recursive: true });
  return chromium.launch({
    executablePath,
    headless: true,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}
