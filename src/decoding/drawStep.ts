/** @file Drawing within the decoding step: its memory on the host, its part of the program, and the scores of tokens. */
import { type BoundArray, ops, type Tensor, type TensorSpec, tf } from '../compiler/index.js';
import { writeAllowed } from './constraints/index.js';
import type { DrawnIds, RowInputs, RowTokens } from './decodingModel.js';
import { alignedIds } from './guidance.js';
import { countedWith, type TokenCounts } from './logitAdjustments.js';
import { entropies, isRandom, likeliestOf, type RowSettings, sampleIds } from './sampledIds.js';
import type { SamplingRule } from './sampling.js';
import { type Given, int32, type StepperOptions } from './stepPrograms.js';

const float32 = (...shape: number[]) => ({ shape, dtype: 'float32' as const });

const SETTINGS = { temperature: float32, k: int32, p: float32 };

/** Specs of inputs of the program, and their memory. */
export type StepInputs = Readonly<Record<string, readonly [TensorSpec, BoundArray]>>;

const allocated = (spec: TensorSpec): readonly [TensorSpec, BoundArray] => {
  const size = spec.shape.reduce((product, dim) => product * dim, 1);
  return [spec, spec.dtype === 'int32' ? new Int32Array(size) : new Float32Array(size)];
};

/** Tokens drawn by a rule in a step, their scores, and the inputs of draws. */
export class DrawStep {
  /** Arrays that runs write, one place a position; and counts of tokens. */
  readonly written: StepInputs;
  /** Arrays that runs read. */
  readonly inputs: StepInputs;

  constructor(
    private readonly rule: SamplingRule,
    private readonly options: StepperOptions,
  ) {
    const { rows, seqlen, model, rowSettings = [], isConstrained = false } = options;
    const { entropy = false, topLogprobs = 0, adjustments } = rule;
    if (topLogprobs > model.vocabSize)
      throw new RangeError(
        `decode: asked for the ${topLogprobs} likeliest tokens of a vocabulary of ${model.vocabSize}.`,
      );
    const byId = int32(rows, model.vocabSize);
    const written: Record<string, TensorSpec> = {
      drawn: int32(seqlen, rows),
      logprobs: float32(seqlen, rows),
      ...(entropy && { entropies: float32(seqlen, rows) }),
      ...(topLogprobs > 0 && {
        topIds: int32(seqlen, rows, topLogprobs),
        topLogprobs: float32(seqlen, rows, topLogprobs),
      }),
      ...(adjustments && { counts: byId }),
    };
    const read: Record<string, TensorSpec> = {
      ...(this.hasNumbers && { uniforms: float32(seqlen, rows) }),
      ...(adjustments && { promptLengths: int32(rows), prompted: byId }),
      ...(isConstrained && { allowed: byId }),
      ...Object.fromEntries(rowSettings.map((name) => [name, SETTINGS[name](rows)])),
    };
    const allocate = (specs: Record<string, TensorSpec>) =>
      Object.fromEntries(Object.entries(specs).map(([name, spec]) => [name, allocated(spec)]));
    this.written = allocate(written);
    this.inputs = allocate(read);
  }

  private get hasNumbers(): boolean {
    return isRandom(this.rule) || this.options.rowSettings?.includes('temperature') === true;
  }

  /** Draws from logits [rows, V] of the tokens `ids` at `position`; gives the inputs of the next run. */
  draw(logits: Tensor, position: Tensor, given: Given): Record<string, Tensor> {
    const { rule } = this;
    const { timeStep, uniforms } = given;
    const tokens = rule.adjustments && this.countsAt(position, given);
    const next = sampleIds(logits, rule, {
      uniforms: this.hasNumbers ? (tf.gather(uniforms, timeStep) as Tensor) : undefined,
      tokens,
      settings: this.settingsOf(given),
      allowed: given.allowed,
    });
    const ids = rule.guidance ? alignedIds(next.ids, rule.guidance.length) : next.ids;
    const at = (name: string, values: Tensor) =>
      ops.updateSlice(
        (given as unknown as Record<string, Tensor>)[name]!,
        tf.expandDims(values),
        timeStep,
        0,
      );
    const { topLogprobs = 0 } = rule;
    const likeliest = topLogprobs > 0 ? likeliestOf(logits, topLogprobs) : undefined;
    return {
      ids,
      timeStep: tf.add(timeStep, tf.scalar(1, 'int32')) as Tensor,
      drawn: at('drawn', ids),
      logprobs: at('logprobs', next.logprobs),
      ...(rule.entropy && { entropies: at('entropies', entropies(logits)) }),
      ...(likeliest && {
        topIds: at('topIds', likeliest.ids),
        topLogprobs: at('topLogprobs', likeliest.logprobs),
      }),
      ...(tokens && { counts: tokens.counts }),
    };
  }

  private settingsOf(given: Given): RowSettings<Tensor> {
    const names = this.options.rowSettings ?? [];
    return Object.fromEntries(names.map((name) => [name, given[name]]));
  }

  /** Counts with the present tokens. */
  private countsAt(position: Tensor, { ids, counts, prompted, promptLengths }: Given): TokenCounts {
    const isDrawn = tf.greaterEqual(position, promptLengths);
    const steps = tf.sub(tf.add(position, tf.scalar(1, 'int32')), promptLengths) as Tensor;
    return { counts: countedWith(counts, ids, isDrawn as Tensor), prompted, steps };
  }

  private array(name: string): BoundArray {
    return (this.inputs[name] ?? this.written[name])![1];
  }

  /** Takes the inputs of a call whose rows are at `positions`. */
  set(timeStep: number, positions: Int32Array, uniforms?: Float32Array, rows: RowInputs = {}): void {
    if (uniforms && this.hasNumbers) this.array('uniforms').set(uniforms, timeStep * this.options.rows);
    for (const name of this.options.rowSettings ?? []) this.array(name).set(rows.settings![name]!);
    if (this.rule.adjustments) this.count(positions, rows.tokens!);
    if (!this.options.isConstrained) return;
    const { vocabSize } = this.options.model;
    const allowed = this.array('allowed') as Int32Array;
    for (const row of positions.keys())
      writeAllowed(allowed, row * vocabSize, vocabSize, rows.allowed?.[row]);
  }

  /** Counts the tokens before the present ones, which the program counts. */
  private count(positions: Int32Array, { ids, promptLengths }: RowTokens): void {
    const [counts, prompted] = [this.array('counts'), this.array('prompted')];
    const size = this.options.model.vocabSize;
    const width = ids.length / positions.length;
    this.array('promptLengths').set(promptLengths);
    counts.fill(0);
    prompted.fill(0);
    for (const [row, position] of positions.entries()) {
      for (let i = 0; i <= position; i++) {
        const place = row * size + ids[row * width + i]!;
        if (i < promptLengths[row]!) prompted[place] = 1;
        else if (i < position) counts[place]! += 1;
      }
    }
  }

  /** The tokens of a call. */
  read(timeStep: number, count: number): DrawnIds {
    const taken = <T extends BoundArray>(name: string): T => {
      const [, array] = this.written[name]!;
      const size = array.length / this.options.seqlen;
      return array.subarray(timeStep * size, (timeStep + count) * size) as T;
    };
    const { entropy = false, topLogprobs = 0 } = this.rule;
    return {
      ids: taken<Int32Array>('drawn'),
      logprobs: taken<Float32Array>('logprobs'),
      ...(entropy && { entropies: taken<Float32Array>('entropies') }),
      ...(topLogprobs > 0 && {
        topIds: taken<Int32Array>('topIds'),
        topLogprobs: taken<Float32Array>('topLogprobs'),
      }),
    };
  }
}
