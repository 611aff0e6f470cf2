// The worker thread that parses large files for file-reader.ts, so that no file can block the event loop of the server.

import { parentPort } from 'node:worker_threads';
import { parseFile } from './documents.ts';

parentPort?.on('message', ({ file, bytes }: { readonly file: string; readonly bytes: Uint8Array }) => {
  parentPort?.postMessage(parseFile(file, bytes));
});
