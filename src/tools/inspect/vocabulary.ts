/** @file The vocabulary of an array of ids, and texts of ids for terminals. */
import { type BaseInput, InputError } from '../../inputs/index.js';
import { visible } from '../diff/display.js';

/** What the ids at one path of a batch mean. */
export interface Vocabulary {
  /** Id of what the vocabulary lacks; null without one. */
  readonly unkId: number | null;
  /** Ids are below it; null where the input does not tell. */
  readonly size: number | null;
  readonly has: (id: number) => boolean;
  /** Text of ids that the vocabulary has; null without text. */
  readonly decode: (ids: readonly number[]) => string | null;
}

/** The vocabulary of the ids at a path. An input may have strings for its ids, and no vocabulary. */
export function vocabularyOf(input: BaseInput, path: string): Vocabulary {
  const ids = input.vocabularyFor(path);
  const size = ids?.vocabSize ?? input.dataIdentity().vocabSize ?? null;
  const decode = (shown: readonly number[]): string | null => {
    try {
      return ids?.decode(shown) ?? input.idsToStrings({ shape: [1, shown.length], data: shown })[0]!;
    } catch (error) {
      if (error instanceof InputError) return null;
      throw error;
    }
  };
  return { unkId: ids?.unkId ?? null, size, decode, has: (id) => id >= 0 && (size === null || id < size) };
}

/** Text of ids, without those that the vocabulary lacks. */
export function textOf(ids: ArrayLike<number>, { decode, has }: Vocabulary): string | null {
  return decode(Array.from(ids).filter(has));
}

/** Lines in which characters that control terminals or turn text are written out. */
export function visibleLines(text: string): string {
  return text.split('\n').map(visible).join('\n');
}
