/** @file BaseInput: the fields and the contract that every input shares (Pax's base_input.BaseInput). */

import { z } from 'zod';
import { Configurable } from '../hparams/index.js';
import type { Batch, BatchSpecs, BatchUnit } from './batch.js';
import type { DataIdentity } from './dataIdentity.js';
import { InputError } from './inputErrors.js';
import type { IdRows, InputSource, InputState } from './inputSource.js';

/** A name that also names a directory. */
export const directoryName = z
  .string()
  .regex(/^[a-zA-Z0-9.:_+-]+$/)
  .refine((name) => name !== '.' && name !== '..', {
    error: (issue) => `expected a name that a directory can have, got '${issue.input}'`,
  });

/** When batches are read ahead in a worker thread, and how many. */
export type Prefetch = 'never' | 'where it is slow' | { readonly batches: number };

/**
 * Data for one host. Each of `numInfeedHosts` processes has its own instance with its own `infeedHostIndex`: training
 * batches of different hosts never share a row, and evaluation ends after the same number of batches on every host,
 * padded with rows of weight 0.
 */
export abstract class BaseInput
  extends Configurable.with(
    {
      name: directoryName
        .nullable()
        .default(null)
        .describe("Name in summaries, directories and messages; null is 'train' in training, else 'input'."),
      batchSize: z.int().positive().describe('Rows of a batch on one host.'),
      numInfeedHosts: z.int().positive().default(1).describe('Number of hosts that share the data.'),
      infeedHostIndex: z.int().min(0).default(0).describe('Index of this host.'),
      inputRandomSeed: z.int().min(0).nullable().default(null).describe('Seed of the order; null is 0.'),
      resetForEval: z
        .boolean()
        .default(true)
        .describe(
          'Whether each evaluation starts at the first batch, so that figures compare; false goes on where the last one ' +
            'stopped, round and round the data.',
        ),
      evalLoopNumBatches: z
        .int()
        .refine((count) => count > 0 || count === -1, {
          error: (issue) => `evalLoopNumBatches must be positive or -1, found ${issue.input}.`,
        })
        .nullable()
        .default(null)
        .describe(
          'Batches of one evaluation or decode; -1 reads to the end of the data. null is -1 in an evaluation that ' +
            'starts at the first batch of data that ends, else 1.',
        ),
      isTraining: z.boolean().default(false).describe('Whether training reads it: shuffled, without end.'),
      prefetchBatches: z
        .int()
        .min(0)
        .nullable()
        .default(null)
        .describe(
          'Batches that openInput reads ahead in a worker thread; null is a few in training where making them takes a ' +
            'while, else 0.',
        ),
    },
    (schema) =>
      schema.refine(({ infeedHostIndex, numInfeedHosts }) => infeedHostIndex < numInfeedHosts, {
        path: ['infeedHostIndex'],
        error: 'must be below numInfeedHosts, for hosts are counted from 0',
      }),
  )
  implements InputSource
{
  static override readonly isAbstract = true;
  get name(): string {
    return this.hp.name ?? (this.hp.isTraining ? 'train' : 'input');
  }

  /** `prefetchBatches` with its default: evaluations are mostly over before a thread has started. */
  get prefetch(): Prefetch {
    const { prefetchBatches: batches, isTraining } = this.hp;
    if (batches !== null) return batches === 0 ? 'never' : { batches };
    return isTraining ? 'where it is slow' : 'never';
  }

  /** Rows, as examples; inputs of images, tokens and the like override it. */
  get batchUnit(): BatchUnit {
    return { unit: 'examples', dims: 1 };
  }

  get batchSize(): number {
    return this.hp.batchSize;
  }

  getGlobalBatchSize(): number {
    return this.hp.batchSize * this.hp.numInfeedHosts;
  }

  /** Whether `getNext` gives batches for ever, so that an evaluation can't read to the end. */
  get isEndless(): boolean {
    return this.hp.isTraining;
  }

  /** Identity of the data; what a subclass leaves out is neither recorded nor compared. */
  dataIdentity(): DataIdentity {
    return {};
  }

  /** The part of `dataIdentity` that follows from the config alone; null where the data must be read. */
  knownIdentity(): DataIdentity | null {
    return {};
  }

  /**
   * Names, shapes and dtypes of the batches, from the config alone: no data is read.
   *
   * @throws InputError unless a subclass overrides it.
   */
  batchSpecs(): BatchSpecs {
    throw new InputError(
      `Input '${this.name}' (${this.constructor.name}) does not say what its batches look like: ` +
        'give the class a batchSpecs() method.',
    );
  }

  abstract getNext(): Promise<Batch>;
  abstract reset(): void;
  abstract getState(): InputState;
  abstract setState(state: InputState): void;

  async peek(): Promise<Batch> {
    const state = this.getState();
    try {
      return await this.getNext();
    } finally {
      this.setState(state);
    }
  }

  idsToStrings(_ids: IdRows, _lengths?: ArrayLike<number>): string[] {
    throw new InputError(`Input '${this.name}' has no text, so its ids have no strings.`);
  }

  async close(): Promise<void> {}
}
