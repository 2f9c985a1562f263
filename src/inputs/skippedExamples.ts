/** @file Broken examples that are left out where `onError` is 'skip', and counted. */
import { z } from 'zod';
import { blamesExample, InputError } from './inputErrors.js';

/** The field of inputs whose examples may be broken. */
export const errorFields = {
  onError: z
    .enum(['fail', 'skip'])
    .default('fail')
    .describe(
      "Handling of broken examples, such as a damaged record or one that a preprocessor refuses: 'fail' raises the error, " +
        "'skip' leaves the example out and counts it.",
    ),
};

export type OnError = 'fail' | 'skip';

/** A count of examples left out. */
export interface Skipped {
  readonly count: number;
  /** Problems of the first ones, with their places. */
  readonly first: readonly string[];
}

/** Number of problems that are kept. */
const SHOWN = 5;

/** More broken examples than this, and none between them that is not, are no accident. */
const MOST_IN_A_ROW = 1000;

export const NONE_SKIPPED: Skipped = { count: 0, first: [] };

/** Two counts, one after the other. */
export function addSkipped(a: Skipped, b: Skipped): Skipped {
  return { count: a.count + b.count, first: [...a.first, ...b.first].slice(0, SHOWN) };
}

/** A count in words: `2 broken examples left out: data/a.jsonl:7: not JSON: …`. */
export function describeSkipped({ count, first }: Skipped): string {
  const more = count > first.length ? '; …' : '';
  return `${count} broken example${count === 1 ? '' : 's'} left out: ${first.join('; ')}${more}`;
}

/** The examples that an input has left out since the last query. */
export class SkippedExamples {
  #now = NONE_SKIPPED;

  /** Those since the last call. */
  take(): Skipped {
    const taken = this.#now;
    this.#now = NONE_SKIPPED;
    return taken;
  }

  add(more: Skipped): void {
    this.#now = addSkipped(this.#now, more);
  }

  /** The result of `make`; undefined for a broken example that `onError` leaves out: then `examples` are counted. */
  attempt<T>(onError: OnError, make: () => T, examples = 1): T | undefined {
    try {
      return make();
    } catch (error) {
      if (onError === 'fail' || !blamesExample(error)) throw error;
      this.add({ count: examples, first: [error.message] });
      return undefined;
    }
  }

  /** The result of `read`, without counting its skipped examples. */
  async uncounted<T>(read: () => Promise<T>): Promise<T> {
    const before = this.#now;
    try {
      return await read();
    } finally {
      this.#now = before;
    }
  }

  get count(): number {
    return this.#now.count;
  }

  /** @param inARow examples that were broken one after the other @throws InputError where these are all, or too many */
  check(inARow: number, all = Number.POSITIVE_INFINITY): void {
    if (inARow < Math.min(all, MOST_IN_A_ROW)) return;
    throw new InputError(
      `${inARow} examples in a row are broken, too many for onError 'skip'. The first: ${this.#now.first[0]}`,
    );
  }
}
