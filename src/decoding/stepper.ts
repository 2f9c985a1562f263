/** @file Stepper: compiled decoding steps of a model, over one decode state. */
import {
  type CompileOptions,
  type Executable,
  type HostTensor,
  ops,
  type Tensor,
  type TensorSpec,
  type Tree,
  tf,
} from '../compiler/index.js';
import type { DecodeState } from './decodeState.js';
import type { DecodingModel, DrawnIds, ExtendRows, ExtendStep, Prefill } from './decodingModel.js';
import { isRandom, sampleIds } from './sampledIds.js';
import {
  type Arrays,
  type Bound,
  type Given,
  ofRows,
  StepPrograms,
  type StepperOptions,
} from './stepPrograms.js';

/** Prompt positions per call, at least where prompts are whole. */
export const PREFILL_STEPS = 64;

/** Positions of a block that holds whole prompts of `count` tokens: few sizes, so that few programs are compiled. */
const wholeBlock = (count: number, seqlen: number): number =>
  Math.min(seqlen, PREFILL_STEPS * 2 ** Math.ceil(Math.log2(Math.max(1, count / PREFILL_STEPS))));

/** Logits [rows, V] with -Infinity at the ids that may not be drawn: those that a padded vocabulary has beyond its tokens. */
function onlyDrawable(logits: Tensor, mayDraw: (id: number) => boolean = () => true): Tensor {
  const drawable = Array.from({ length: logits.shape[1]! }, (_, id) => mayDraw(id));
  if (drawable.every(Boolean)) return logits;
  const never = tf.fill(logits.shape, Number.NEGATIVE_INFINITY);
  return tf.where(tf.expandDims(tf.tensor1d(drawable, 'bool')), logits, never) as Tensor;
}

/** Prompts of one number of rows: their state, and the programs on it. */
interface PromptLane {
  readonly state: DecodeState;
  /** Tokens of each block and their number in each row, by the block's size. */
  readonly blocks: Map<number, Bound & { readonly ids: Int32Array; readonly lengths: Int32Array }>;
  begin?: Bound & { readonly arrays: Arrays };
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
  private readonly drawn: Int32Array;
  private readonly logprobs: Float32Array;
  private readonly uniforms: Float32Array;
  /** Compiles and binds the programs. */
  private readonly compiler: StepPrograms;
  private state!: DecodeState;
  private main!: Bound;
  /** The step of rows at positions of their own. */
  private apart: Bound | undefined;
  private readonly lanes = new Map<number, PromptLane>();

  private constructor(private readonly options: StepperOptions) {
    const { rows, seqlen } = options;
    this.compiler = new StepPrograms(options);
    this.rows = rows;
    this.ids = new Int32Array(rows);
    this.positions = new Int32Array(rows);
    this.starts = new Int32Array(rows);
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
    const { rule, rows, seqlen, model, mayDraw } = this.options;
    const hasNumbers = rule !== null && isRandom(rule);
    const { isWhole } = this;
    const step = ({ ids, timeStep, starts, drawn, logprobs, uniforms }: Given): Tree<Tensor> => {
      const position = isWhole ? positionsOf(timeStep, starts, seqlen) : timeStep;
      const logits = onlyDrawable(model.extendStep(ids, { timeStep: position }), mayDraw);
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
    const specs = {
      ids: int32(rows),
      timeStep: int32(),
      ...(isWhole && { starts: int32(rows) }),
      ...(rule && { drawn: byPosition('int32'), logprobs: byPosition('float32') }),
      ...(hasNumbers && { uniforms: byPosition('float32') }),
    };
    const executable = await this.compiler.compile('decode_step', step, rows, specs, {});
    this.state = this.compiler.newState(executable, rows);
    const { ids, timeStep, starts, drawn, logprobs, uniforms } = this;
    this.main = this.compiler.bind(
      executable,
      this.state,
      {
        ...{ ids, timeStep },
        ...(isWhole && { starts }),
        ...(rule && { drawn, logprobs }),
        ...(hasNumbers && { uniforms }),
      },
      rule ? ['ids', 'timeStep'] : [],
      rule ? { drawn, logprobs } : { logits: null },
    );
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

  /** What prompts of `rows` rows are computed in: this state, where each row has a prompt of its own. */
  private laneOf(rows: number, executable: Executable): PromptLane {
    const lane = this.lanes.get(rows) ?? {
      state: rows === this.rows ? this.state : this.compiler.newState(executable, rows),
      blocks: new Map(),
    };
    this.lanes.set(rows, lane);
    return lane;
  }

  private async blockOf(rows: number, steps: number) {
    const found = this.lanes.get(rows)?.blocks.get(steps);
    if (found) return found;
    const { isWhole } = this;
    const { model } = this.options;
    const prefill = ({ ids, timeStep, length }: Given): Tree<Tensor> => {
      model.extendStep(ids, { timeStep, length, ...(isWhole && { prefix: length }) });
      return {};
    };
    const specs = { ids: int32(rows, steps), timeStep: int32(), length: int32(rows) };
    const executable = await this.compiler.compile('decode_prefill', prefill, rows, specs, this.sameEngine);
    const lane = this.laneOf(rows, executable);
    const [ids, lengths] = [new Int32Array(rows * steps), new Int32Array(rows)];
    const inputs = { ids, timeStep: this.timeStep, length: lengths };
    const block = { ...this.compiler.bind(executable, lane.state, inputs, [], {}), ids, lengths };
    lane.blocks.set(steps, block);
    return block;
  }

  private async beginning(rows: number, prompt: Readonly<Record<string, TensorSpec>>) {
    const found = this.lanes.get(rows)?.begin;
    if (found) return found;
    const { model } = this.options;
    const begin = (given: Given): Tree<Tensor> => {
      model.begin!(given.prompt);
      return {};
    };
    const specs = { prompt: prompt as Record<string, TensorSpec> };
    const executable = await this.compiler.compile('decode_begin', begin, rows, specs, this.sameEngine);
    const names = Object.keys(prompt);
    const given = executable.newInputs(names.map((name) => `prompt.${name}`));
    const arrays = Object.fromEntries(names.map((name, i) => [name, given[i]!]));
    const lane = this.laneOf(rows, executable);
    lane.begin = { ...this.compiler.bind(executable, lane.state, { prompt: arrays }, [], {}), arrays };
    return lane.begin;
  }

  private get programs(): readonly Bound[] {
    const lanes = [...this.lanes.values()];
    return [
      this.main,
      ...(this.apart ? [this.apart] : []),
      ...lanes.flatMap(({ blocks, begin }) => [...blocks.values(), ...(begin ? [begin] : [])]),
    ];
  }

  /** Clears the state. */
  reset(): void {
    this.state.clear();
    for (const { state } of this.lanes.values()) state.clear();
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
    const { extendStep, extendRows, extendDrawing, prefill, reorder } = this;
    const drawing = { extendGreedily: extendDrawing, extendSampling: extendDrawing };
    const { isWhole: wholePrompts } = this;
    return { extendStep, extendRows, prefill, reorder, wholePrompts, ...(this.options.rule && drawing) };
  }

  /** Whether prompts are taken whole. */
  private get isWhole(): boolean {
    return this.options.model.seesWholePrompt ?? false;
  }

  /**
   * Begins a decode with the features of its prompts beside tokens.
   *
   * @param prompt the arrays of the model's `promptNames`, the first axis of which divides the rows: each prompt's state goes
   *   to as many consecutive rows.
   * @throws RangeError for arrays of other shapes than those of `options.prompt`.
   */
  async begin(prompt: Readonly<Record<string, HostTensor>>): Promise<void> {
    const rows = Object.values(prompt)[0]!.shape[0]!;
    for (const [name, { shape }] of Object.entries(ofRows(this.options.prompt ?? {}, rows))) {
      const found = prompt[name]?.shape ?? [];
      if (found.join() !== shape.join())
        throw new RangeError(
          `begin: expected '${name}' of shape [${shape.join(', ')}], got [${found.join(', ')}].`,
        );
    }
    const { call, arrays } = await this.beginning(rows, prompt);
    for (const [name, { data }] of Object.entries(prompt)) (arrays[name] as Float32Array).set(data);
    await call.run();
    this.share(rows);
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
    const { seqlen } = this.options;
    const { isWhole } = this;
    const rows = given?.length ?? ids.length / count;
    const size = isWhole ? wholeBlock(count, seqlen) : PREFILL_STEPS;
    for (let begin = 0; begin < count; begin += size) {
      const steps = Math.min(size, seqlen - begin);
      const block = await this.blockOf(rows, steps);
      block.ids.fill(0);
      for (let row = 0; row < rows; row++) {
        const tokens = ids.subarray(row * count + begin, row * count + Math.min(count, begin + steps));
        block.ids.set(tokens, row * steps);
        block.lengths[row] = Math.max(0, Math.min(given?.[row] ?? count, begin + steps) - begin);
      }
      this.timeStep[0] = begin;
      await block.call.run();
    }
    if (isWhole) this.startAfter(given ?? new Int32Array(rows).fill(count));
    this.share(rows);
  };

  /** Begins the steps behind prompts of these lengths. */
  private startAfter(lengths: Int32Array): void {
    for (let row = 0; row < this.rows; row++)
      this.starts[row] = lengths[Math.floor((row * lengths.length) / this.rows)]!;
  }

  /** Gives each row the state of another, or its own. */
  readonly reorder = (origins: ArrayLike<number>): void => this.state.reorder(origins);

  /** Gives the state of prompts to the rows that continue them. */
  private share(rows: number): void {
    const lane = this.lanes.get(rows);
    // Prompts of one token have computed nothing.
    if (lane && lane.state !== this.state) this.state.spread(lane.state);
  }
}

async function logitsOf({ call }: Bound): Promise<Float32Array> {
  const outputs = (await call.run()) as unknown as { logits: { data: Float32Array } };
  return outputs.logits.data;
}

/** Positions of rows at a step, [rows]; those of rows that have ended stay within the sequence. */
const positionsOf = (timeStep: Tensor, starts: Tensor, seqlen: number): Tensor =>
  tf.minimum(tf.add(starts, timeStep), tf.scalar(seqlen - 1, 'int32'));

const int32 = (...shape: number[]) => ({ shape, dtype: 'int32' as const });
