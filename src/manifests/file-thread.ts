// The thread that parses large files for file-reader.ts: whatever a file does to the parser, requests are answered.

import { parentPort } from 'node:worker_threads';
import { parseFile } from './documents.ts';

parentPort?.on('message', ({ file, bytes }: { readonly file: string; readonly bytes: Uint8Array }) => {
  parentPort?.postMessage(parseFile(file, bytes));
});
