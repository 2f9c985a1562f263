/** @file The worker thread that writes checkpoints, one request after the other. */

import { parentPort } from 'node:worker_threads';
import { writeFileDurably } from './durableFile.js';
import { type FilePart, writePart, writeParts } from './filePart.js';
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

/** Writes a checkpoint, or a part of one of which another process is the first. @returns old ones that could not be deleted */
async function write(request: WriteRequest | FilePart): Promise<WriteReply['kept']> {
  if (!('description' in request)) {
    writePart(request);
    return [];
  }
  const { state } = request;
  const writeState = (path: string) =>
    'prefix' in state
      ? writeFileDurably(path, [state.prefix, new Uint8Array(state.data)])
      : writeParts(state);
  await writeCheckpoint({ ...request, writeState });
  return deleteOld(request).map(({ name, error }) => ({ name, ...failureOf(error) }));
}

parentPort!.on('message', async (request: WriteRequest | FilePart) => {
  let reply: WriteReply;
  try {
    reply = { failure: undefined, kept: await write(request) };
  } catch (error) {
    reply = { failure: failureOf(error), kept: [] };
  }
  parentPort!.postMessage(reply);
});
