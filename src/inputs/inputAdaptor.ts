/** @file Base of inputs that give the rows of another input in other batches: whatever says how rows are to be read is the other's. */
import { BaseInput } from './baseInput.js';
import type { Batch, BatchUnit } from './batch.js';
import type { DataIdentity } from './dataIdentity.js';
import type { ExampleMetrics, IdRows, IdVocabulary, RowTraits } from './inputSource.js';
import { type PartStates, partsBelow } from './recordedParts.js';

/** An input over the one of its field `input`. */
export abstract class InputAdaptor extends BaseInput.with({}) {
  static override readonly isAbstract = true;

  #built: BaseInput | undefined;

  /** The other input, built anew. */
  protected abstract made(): BaseInput;

  /** The other input, which skips examples for this one. */
  protected get input(): BaseInput {
    this.#built ??= this.made();
    this.#built.skipped = this.skipped;
    return this.#built;
  }

  override get isEndless(): boolean {
    return this.input.isEndless;
  }

  override get batchUnit(): BatchUnit {
    return this.input.batchUnit;
  }

  override rowTraits(): RowTraits {
    const { packedBy, ...traits } = this.input.rowTraits();
    return { ...traits, ...(packedBy !== undefined && { packedBy: `input.${packedBy}` }) };
  }

  override vocabularyFor(path: string): IdVocabulary | null {
    return this.input.vocabularyFor(path);
  }

  override classNamesFor(path: string): readonly string[] | null {
    return this.input.classNamesFor(path);
  }

  override exampleBatch(...examples: Parameters<BaseInput['exampleBatch']>): Promise<Batch> {
    return this.input.exampleBatch(...examples);
  }

  override idsToStrings(ids: IdRows, lengths?: ArrayLike<number>): string[] {
    return this.input.idsToStrings(ids, lengths);
  }

  override predictMetrics(): ExampleMetrics<ArrayLike<number>> | null {
    return this.input.predictMetrics();
  }

  override scoreMetrics(): ExampleMetrics<number> | null {
    return this.input.scoreMetrics();
  }

  override dataIdentity(): DataIdentity {
    return this.input.dataIdentity();
  }

  override recordedParts(): PartStates {
    return partsBelow(this.input.recordedParts(), ['input']);
  }

  override knownIdentity(): DataIdentity | null {
    return this.input.knownIdentity();
  }

  override async close(): Promise<void> {
    await this.#built?.close();
  }
}
