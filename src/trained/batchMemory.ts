/** @file Memory of a batch, compared with the machine's before anything is allocated. */
import { totalmem } from 'node:os';
import { sizeOf } from '../compiler/index.js';
import { RequestError } from './requestError.js';

/** Bytes of an element of an array of the host. */
const ELEMENT = 4;

/** Bytes of arrays. */
export const bytesOf = (specs: Iterable<{ readonly shape: readonly number[] }>): number =>
  [...specs].reduce((sum, { shape }) => sum + ELEMENT * sizeOf(shape), 0);

const shown = (bytes: number): string => `${bytes.toLocaleString('en-US')} bytes`;

/**
 * Compares the arrays that a batch cannot do without with the memory of the machine, or of the container if that is less.
 *
 * @throws RequestError with the bytes that they would take
 */
export function checkBatchMemory(batchSize: number, what: string, bytes: number): void {
  const memory = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
  if (bytes <= memory) return;
  throw new RequestError(
    `The batch size is ${batchSize.toLocaleString('en-US')}: ${what} would take ${shown(bytes)}, and there are ${shown(memory)} of memory. Set a smaller batchSize (--batch_size).`,
  );
}
