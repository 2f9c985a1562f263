/** @file Memory of a batch, compared with the machine's before it is allocated. */
import { totalmem } from 'node:os';
import { RequestError } from './requestError.js';

const shown = (bytes: number): string => `${bytes.toLocaleString('en-US')} bytes`;

/** The arrays that a batch cannot do without. */
interface BatchArrays {
  readonly batchSize: number;
  /** Their name in messages. */
  readonly what: string;
  readonly bytes: number;
}

/** A failed allocation of V8. */
const isRefused = (error: unknown): boolean =>
  error instanceof RangeError &&
  /allocation failed|Invalid (typed )?array( buffer)? length/i.test(error.message);

/**
 * Allocates a batch by `make`, unless its arrays alone exceed the memory of the machine, or of the container if that
 * is less.
 *
 * @throws RequestError with the required bytes, also if an allocation fails
 */
export async function withinMemory<T>(
  { batchSize, what, bytes }: BatchArrays,
  make: () => Promise<T>,
): Promise<T> {
  const memory = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
  const beyond = (options?: ErrorOptions): RequestError =>
    new RequestError(
      `The batch size is ${batchSize.toLocaleString('en-US')}: ${what} would take ${shown(bytes)}, and there are ${shown(memory)} of memory. Set a smaller batchSize (--batch_size).`,
      options,
    );
  if (bytes > memory) throw beyond();
  try {
    return await make();
  } catch (cause) {
    throw isRefused(cause) ? beyond({ cause }) : cause;
  }
}
