/** @file The worker thread that writes checkpoints, one request after the other. */

import { parentPort } from 'node:worker_threads';
import { type WriteRequest, writeCheckpoint } from './writeCheckpoint.js';

/** The worker's answer to each request: null, or why the checkpoint could not be written. */
export type WriteReply = null | { readonly message: string };

parentPort!.on('message', (request: WriteRequest) => {
  let reply: WriteReply = null;
  try {
    writeCheckpoint(request);
  } catch (error) {
    reply = { message: error instanceof Error ? error.message : String(error) };
  }
  parentPort!.postMessage(reply);
});
