/** @file The worker thread that writes checkpoints, one request after the other. */

import { parentPort } from 'node:worker_threads';
import { writeFileDurably } from './durableFile.js';
import { deleteOld, type WriteRequest, writeCheckpoint } from './writeCheckpoint.js';

/** A system error, as it crosses to another thread. */
export interface Failure {
  readonly message: string;
  readonly code: string | undefined;
  readonly errno: number | undefined;
}

/** The worker's answer: the error of the save, if any, and those of deleting old checkpoints. */
export interface WriteReply {
  readonly failure: Failure | undefined;
  readonly kept: readonly (Failure & { readonly name: string })[];
}

function failureOf(error: unknown): Failure {
  if (!(error instanceof Error)) return { message: String(error), code: undefined, errno: undefined };
  const { message, code, errno } = error as NodeJS.ErrnoException;
  return { message, code, errno };
}

parentPort!.on('message', async (request: WriteRequest) => {
  let reply: WriteReply;
  try {
    const state = [request.prefix, new Uint8Array(request.data)];
    await writeCheckpoint({ ...request, writeState: (path) => writeFileDurably(path, state) });
    const kept = deleteOld(request).map(({ name, error }) => ({ name, ...failureOf(error) }));
    reply = { failure: undefined, kept };
  } catch (error) {
    reply = { failure: failureOf(error), kept: [] };
  }
  parentPort!.postMessage(reply);
});
