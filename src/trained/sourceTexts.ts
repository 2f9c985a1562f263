/** @file Texts that an encoder-decoder reads and writes, by the dataset of its run. */
import type { HostTensor } from '../compiler/index.js';
import { type Decodable, targetPath } from '../decoding/index.js';
import {
  arraysOf,
  type BaseInput,
  type IdVocabulary,
  InputError,
  type TokenDecoder,
  WindowDecoder,
} from '../inputs/index.js';
import type { Specs } from './predictions.js';
import { RequestError } from './requestError.js';

/** Arrays with which a decode begins, by path, of one row. */
export type Source = Readonly<Record<string, HostTensor>>;

/** Sources of a model from texts, and texts of its targets. */
export class SourceTexts {
  private constructor(
    private readonly input: BaseInput,
    private readonly vocabulary: IdVocabulary,
    /** The ids with which targets begin. */
    readonly start: readonly number[],
    /** Specs of the arrays of a source, for any number of rows. */
    readonly specs: Specs,
  ) {}

  /** Null where the model is no encoder-decoder, or its input has no texts. */
  static of(
    model: Pick<Decodable, 'nested' | 'promptNames'>,
    input: BaseInput,
    specs: Specs | undefined,
  ): SourceTexts | null {
    const vocabulary = model.nested ? input.vocabularyFor(targetPath(model, 'ids')) : null;
    const { promptNames = [] } = model;
    if (vocabulary?.targetStart === undefined || !specs || promptNames.some((name) => !specs[name]))
      return null;
    const own = Object.fromEntries(promptNames.map((name) => [name, specs[name]!]));
    return new SourceTexts(input, vocabulary, vocabulary.targetStart, own);
  }

  /** The arrays of a text, or of the file at a path. @throws RequestError for one that the input does not take */
  async sourceOf(text: string, readsFiles: boolean): Promise<Source> {
    try {
      const names = Object.keys(this.specs);
      const batch = await this.input.exampleBatch([text], names, { first: 0, readsFiles });
      return Object.fromEntries([...arraysOf(batch)].filter(([path]) => names.includes(path)));
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      throw new RequestError(`The source: ${error.message}`, { cause: error });
    }
  }

  hasText(id: number): boolean {
    return this.vocabulary.hasText(id);
  }

  readonly decode = (ids: ArrayLike<number>): string => this.vocabulary.decode(ids);
  tokenBytes(id: number): Uint8Array | undefined {
    return this.vocabulary.tokenBytes(id);
  }

  /** Decodes targets token by token. */
  decoder(): TokenDecoder {
    return new WindowDecoder(this.decode, []);
  }
}
