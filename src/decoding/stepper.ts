/** @file Stepper: compiled decoding steps of a model, over one decode state. */
import {
  type BoundArray,
  type CompileOptions,
  type HostTensor,
  ops,
  type Tensor,
  type TensorSpec,
  type Tree,
  tf,
} from '../compiler/index.js';
import type { DecodeState } from './decodeState.js';
import type { DecodingModel, DrawnIds, ExtendRows, ExtendStep, Prefill } from './decodingModel.js';
import { PromptLanes } from './promptLanes.js';
import { isRandom, sampleIds } from './sampledIds.js';
import { type Bound, type Given, int32, StepPrograms, type StepperOptions } from './stepPrograms.js';

/** Logits [rows, V] with -Infinity at the ids that may not be drawn: those that a padded vocabulary has beyond its tokens. */
function onlyDrawable(logits: Tensor, mayDraw: (id: number) => boolean = () => true): Tensor {
  const drawable = Array.from({ length: logits.shape[1]! }, (_, id) => mayDraw(id));
  if (drawable.every(Boolean)) return logits;
  const never = tf.fill(logits.shape, Number.NEGATIVE_INFINITY);
  return tf.where(tf.expandDims(tf.tensor1d(drawable, 'bool')), logits, never) as Tensor;
}

/**
 * A model's decode state, and the programs on it: one token per row, runs of drawn tokens, blocks of prompt tokens. Several
 * rows may continue one prompt, which is then computed once.
 */
export class Stepper {
  readonly rows: number;
  private readonly ids: Int32Array;
  private readonly timeStep = new Int32Array(1);
  private readonly positions: Int32Array;
  /** Positions of rows at step 0. */
  private readonly starts: Int32Array;
  /** Tokens of the prompts that rows share. */
  private readonly promptLength: Int32Array;
  private readonly drawn: Int32Array;
  private readonly logprobs: Float32Array;
  private readonly uniforms: Float32Array;
  /** Compiles and binds the programs. */
  private readonly compiler: StepPrograms;
  private state!: DecodeState;
  private main!: Bound;
  /** The step of rows at positions of their own. */
  private apart: Bound | undefined;
  private prompts!: PromptLanes;

  private constructor(private readonly options: StepperOptions) {
    const { rows, seqlen } = options;
    this.compiler = new StepPrograms(options);
    this.rows = rows;
    this.ids = new Int32Array(rows);
    this.positions = new Int32Array(rows);
    this.starts = new Int32Array(rows);
    this.promptLength = new Int32Array(options.sharing?.prompts ?? 0);
    this.drawn = new Int32Array(rows * seqlen);
    this.logprobs = new Float32Array(rows * seqlen);
    this.uniforms = new Float32Array(rows * seqlen);
  }

  /** Compiles the step; other programs are compiled at first use. */
  static async create(options: StepperOptions): Promise<Stepper> {
    const stepper = new Stepper({ ...options, seqlen: Math.max(1, options.seqlen) });
    await stepper.compileStep();
    return stepper;
  }

  private async compileStep(): Promise<void> {
    const { rule, rows, seqlen, model, mayDraw, sharing } = this.options;
    const hasNumbers = rule !== null && isRandom(rule);
    const { isWhole } = this;
    const step = ({
      ids,
      timeStep,
      starts,
      promptLength,
      drawn,
      logprobs,
      uniforms,
    }: Given): Tree<Tensor> => {
      const position = isWhole ? positionsOf(timeStep, starts, seqlen) : timeStep;
      const args = { timeStep: position, ...(sharing && { promptLength }) };
      const logits = onlyDrawable(model.extendStep(ids, args), mayDraw);
      if (rule === null) return { logits };
      const numbers = hasNumbers ? tf.gather(uniforms, timeStep) : undefined;
      const next = sampleIds(logits, rule, numbers);
      return {
        ids: next.ids,
        timeStep: tf.add(timeStep, tf.scalar(1, 'int32')) as Tensor,
        drawn: ops.updateSlice(drawn, tf.expandDims(next.ids), timeStep, 0),
        logprobs: ops.updateSlice(logprobs, tf.expandDims(next.logprobs), timeStep, 0),
      };
    };
    const byPosition = (dtype: 'int32' | 'float32') => ({ shape: [seqlen, rows], dtype });
    const { ids, timeStep, starts, promptLength, drawn, logprobs, uniforms } = this;
    const inputs: Readonly<Record<string, readonly [TensorSpec, BoundArray]>> = {
      ids: [int32(rows), ids],
      timeStep: [int32(), timeStep],
      ...(isWhole && { starts: [int32(rows), starts] }),
      ...(sharing && { promptLength: [int32(sharing.prompts), promptLength] }),
      ...(rule && { drawn: [byPosition('int32'), drawn], logprobs: [byPosition('float32'), logprobs] }),
      ...(hasNumbers && { uniforms: [byPosition('float32'), uniforms] }),
    };
    const entries = Object.entries(inputs);
    const specs = Object.fromEntries(entries.map(([name, [spec]]) => [name, spec]));
    const executable = await this.compiler.compile('decode_step', step, rows, specs, {});
    this.state = this.compiler.newState(executable, rows);
    this.main = this.compiler.bind(
      executable,
      this.state,
      Object.fromEntries(entries.map(([name, [, array]]) => [name, array])),
      rule ? ['ids', 'timeStep'] : [],
      rule ? { drawn, logprobs } : { logits: null },
    );
    this.prompts = new PromptLanes(this.options, this.compiler, this.state, this.sameEngine);
  }

  /** The step of rows at positions of their own, which gives logits. */
  private async compileApart(): Promise<Bound> {
    const { rows, model, mayDraw } = this.options;
    const step = ({ ids, timeStep }: Given): Tree<Tensor> => ({
      logits: onlyDrawable(model.extendStep(ids, { timeStep }), mayDraw),
    });
    const specs = { ids: int32(rows), timeStep: int32(rows) };
    const executable = await this.compiler.compile('decode_rows', step, rows, specs, this.sameEngine);
    const inputs = { ids: this.ids, timeStep: this.positions };
    return this.compiler.bind(executable, this.state, inputs, [], { logits: null });
  }

  /** The state has the format of the step's engine. */
  private get sameEngine(): CompileOptions {
    return { engine: this.main.executable.runner };
  }

  private get programs(): readonly Bound[] {
    return [this.main, ...(this.apart ? [this.apart] : []), ...this.prompts.programs];
  }

  /** Whether it decodes as many rows, of prompts no longer than its caches and with features of its shapes. */
  fits({ rows, sharing, prompt = {} }: Pick<StepperOptions, 'rows' | 'sharing' | 'prompt'>): boolean {
    const own = this.options;
    const hasRoom =
      sharing === undefined ||
      (sharing.promptSize <= own.sharing!.promptSize && sharing.prompts === own.sharing!.prompts);
    const isOwn = ([name, { shape }]: [string, TensorSpec]): boolean =>
      own.prompt?.[name]?.shape.slice(1).join() === shape.slice(1).join();
    return rows === own.rows && hasRoom && Object.entries(prompt).every(isOwn);
  }

  /** Clears the state. */
  reset(): void {
    for (const state of [this.state, ...this.prompts.states]) state.clear();
  }

  /** Must be called after the parameters have changed. */
  refresh(): void {
    for (const { executable } of this.programs) executable.refresh();
  }

  async dispose(): Promise<void> {
    for (const { executable } of this.programs) await executable.dispose();
  }

  /** The model as decoders use it. */
  get calls(): DecodingModel {
    const { extendStep, extendRows, extendDrawing, prefill, reorder, isWhole: wholePrompts } = this;
    const drawing = { extendGreedily: extendDrawing, extendSampling: extendDrawing };
    const { rule, sharing } = this.options;
    // Rows that share a prompt stay with it, and step together.
    const moving = sharing ? {} : { extendRows, reorder };
    return { extendStep, prefill, wholePrompts, ...moving, ...(rule && drawing) };
  }

  /** Whether prompts are taken whole. */
  private get isWhole(): boolean {
    const { model, sharing } = this.options;
    return sharing !== undefined || (model.seesWholePrompt ?? false);
  }

  /** Bytes of all states. */
  get stateBytes(): number {
    return [this.state, ...this.prompts.states].reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  /**
   * Begins a decode with the features of its prompts beside tokens.
   *
   * @param prompt the arrays of the model's `promptNames`, the first axis of which divides the rows: each prompt's state goes
   *   to as many consecutive rows.
   * @throws RangeError for arrays of other shapes than those of `options.prompt`.
   */
  async begin(prompt: Readonly<Record<string, HostTensor>>): Promise<void> {
    await this.prompts.begin(prompt);
  }

  /** Runs one position; returns the next logits [rows, vocabSize]. Where the program does not draw. */
  readonly extendStep: ExtendStep = async (ids, timeStep) => {
    this.ids.set(ids);
    this.timeStep[0] = timeStep;
    return logitsOf(this.main);
  };

  /** Runs one position of each row; returns the next logits [rows, vocabSize]. */
  readonly extendRows: ExtendRows = async (ids, positions) => {
    this.apart ??= await this.compileApart();
    this.ids.set(ids);
    this.positions.set(positions);
    return logitsOf(this.apart);
  };

  /** Runs several positions, each fed the token that was drawn after the one before. Where the program draws. */
  readonly extendDrawing = async (
    ids: Int32Array,
    timeStep: number,
    count: number,
    uniforms?: Float32Array,
  ): Promise<DrawnIds> => {
    const { rows } = this;
    this.ids.set(ids);
    if (uniforms) this.uniforms.set(uniforms, timeStep * rows);
    this.timeStep[0] = timeStep;
    await this.main.call.run(count);
    const [begin, end] = [timeStep * rows, (timeStep + count) * rows];
    return { ids: this.drawn.subarray(begin, end), logprobs: this.logprobs.subarray(begin, end) };
  };

  /** Fills the state with the first positions of prompts, block by block. */
  readonly prefill: Prefill = async (ids, count, given) => {
    const lengths = given ?? new Int32Array(ids.length / count).fill(count);
    await this.prompts.prefill(ids, count, lengths);
    this.promptLength.set(lengths.subarray(0, this.promptLength.length));
    // Steps begin behind whole prompts.
    for (let row = 0; row < this.rows; row++)
      this.starts[row] = lengths[Math.floor((row * lengths.length) / this.rows)]!;
  };

  /** Gives each row the state of another, or its own. */
  readonly reorder = (origins: ArrayLike<number>): void => this.state.reorder(origins);
}

async function logitsOf({ call }: Bound): Promise<Float32Array> {
  const outputs = (await call.run()) as unknown as { logits: { data: Float32Array } };
  return outputs.logits.data;
}

/** Positions of rows at a step, [rows]; those of rows that have ended stay within the sequence. */
const positionsOf = (timeStep: Tensor, starts: Tensor, seqlen: number): Tensor =>
  tf.minimum(tf.add(starts, timeStep), tf.scalar(seqlen - 1, 'int32'));
