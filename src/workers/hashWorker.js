/** @file The worker thread that hashes pieces of shared memory in their order; JavaScript, which starts without tsx. */
import { createHash } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';

const hash = createHash('sha256');

// A piece is answered once it is hashed, and null, which ends the thread, with the digest.
parentPort?.on('message', (/** @type {{ start: number, length: number } | null} */ piece) => {
  if (piece === null) {
    parentPort?.postMessage(hash.digest('hex'));
    parentPort?.close();
    return;
  }
  hash.update(new Uint8Array(workerData, piece.start, piece.length));
  parentPort?.postMessage(piece.start);
});
