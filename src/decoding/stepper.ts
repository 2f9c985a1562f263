/** @file Stepper: compiled decoding steps of a model, over one decode state. */
import {
  type CompileOptions,
  type Executable,
  type HostTensor,
  type Tensor,
  type TensorSpec,
  type Tree,
  tf,
} from '../compiler/index.js';
import type { DecodeState } from './decodeState.js';
import type {
  DecodingModel,
  DrawnIds,
  ExtendCandidates,
  ExtendDrafts,
  ExtendRows,
  ExtendStep,
  Prefill,
  Reorder,
  RowInputs,
} from './decodingModel.js';
import { DrawStep, type StepInputs } from './drawStep.js';
import { guidedLogits } from './guidance.js';
import { PromptLanes } from './promptLanes.js';
import { GREEDY, likeliestOf, logprobsAt, sampleIds } from './sampledIds.js';
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
  /** Where the program draws. */
  private readonly draws: DrawStep | undefined;
  /** Compiles and binds the programs. */
  private readonly compiler: StepPrograms;
  private state!: DecodeState;
  private main!: Bound;
  /** The step of rows at positions of their own. */
  private apart: Bound | undefined;
  /** The step of a token of each row and a draft behind it. */
  private drafts: (Bound & { readonly ids: Int32Array }) | undefined;
  private prompts!: PromptLanes;

  private constructor(private readonly options: StepperOptions) {
    const { rows } = options;
    this.compiler = new StepPrograms(options);
    this.rows = rows;
    this.ids = new Int32Array(rows);
    this.positions = new Int32Array(rows);
    this.starts = new Int32Array(rows);
    this.promptLength = new Int32Array(options.sharing?.prompts ?? 0);
    this.draws = options.rule ? new DrawStep(options.rule, options) : undefined;
  }

  /** Compiles the step; other programs are compiled at first use. */
  static async create(options: StepperOptions): Promise<Stepper> {
    const stepper = new Stepper({ ...options, seqlen: Math.max(1, options.seqlen) });
    await (options.candidates ? stepper.compileCandidates() : stepper.compileStep());
    return stepper;
  }

  private async compileStep(): Promise<void> {
    if (this.options.rowsApart || this.options.draftTokens !== undefined) {
      const executable = await this.compileRows({});
      this.state = this.compiler.newState(executable, this.rows);
      this.main = this.bindRows(executable);
      this.apart = this.main;
    } else await this.compileTogether();
    this.prompts = new PromptLanes(this.options, this.compiler, this.state, this.sameEngine);
  }

  /** The step of rows at one position. */
  private async compileTogether(): Promise<void> {
    const { rule, rows, seqlen, model, mayDraw, sharing } = this.options;
    const { isWhole, draws, ids, timeStep, starts, promptLength } = this;
    const step = (given: Given): Tree<Tensor> => {
      const position = isWhole ? positionsOf(given.timeStep, given.starts, seqlen) : given.timeStep;
      const args = { timeStep: position, ...(sharing && { promptLength: given.promptLength }) };
      const own = model.extendStep(given.ids, args);
      const logits = onlyDrawable(rule?.guidance ? guidedLogits(own, rule.guidance) : own, mayDraw);
      return draws ? draws.draw(logits, position, given) : { logits };
    };
    const inputs: StepInputs = {
      ids: [int32(rows), ids],
      timeStep: [int32(), timeStep],
      ...(isWhole && { starts: [int32(rows), starts] }),
      ...(sharing && { promptLength: [int32(sharing.prompts), promptLength] }),
      ...draws?.written,
      ...draws?.inputs,
    };
    const part = <K extends 0 | 1>(of: StepInputs, index: K) =>
      Object.fromEntries(Object.entries(of).map(([name, pair]) => [name, pair[index]]));
    const executable = await this.compiler.compile('decode_step', step, rows, part(inputs, 0), {});
    this.state = this.compiler.newState(executable, rows);
    this.main = this.compiler.bind(
      executable,
      this.state,
      part(inputs, 1),
      rule ? ['ids', 'timeStep'] : [],
      draws ? part(draws.written, 1) : { logits: null },
    );
  }

  /** The step of rows at positions of their own, which gives candidates. */
  private async compileCandidates(): Promise<void> {
    const { rows, model, mayDraw } = this.options;
    const { count, ids: certain } = this.options.candidates!;
    const hasCertain = certain.length > 0;
    const step = ({ ids, timeStep }: Given): Tree<Tensor> => {
      const logits = onlyDrawable(model.extendStep(ids, { timeStep }), mayDraw);
      const { ids: likeliest, logprobs } = likeliestOf(logits, Math.min(count, model.vocabSize));
      return {
        candidates: likeliest,
        logprobs,
        ...(hasCertain && { logprobsOf: logprobsAt(logits, certain) }),
      };
    };
    const specs = { ids: int32(rows), timeStep: int32(rows) };
    const executable = await this.compiler.compile('decode_candidates', step, rows, specs, {});
    this.state = this.compiler.newState(executable, rows);
    const inputs = { ids: this.ids, timeStep: this.positions };
    const outputs = { candidates: null, logprobs: null, ...(hasCertain && { logprobsOf: null }) };
    this.main = this.compiler.bind(executable, this.state, inputs, [], outputs);
    this.prompts = new PromptLanes(this.options, this.compiler, this.state, this.sameEngine);
  }

  /** The step of rows at positions of their own, which gives logits. */
  private compileRows(options: CompileOptions): Promise<Executable> {
    const { rows, model, mayDraw } = this.options;
    const step = ({ ids, timeStep }: Given): Tree<Tensor> => ({
      logits: onlyDrawable(model.extendStep(ids, { timeStep }), mayDraw),
    });
    const specs = { ids: int32(rows), timeStep: int32(rows) };
    return this.compiler.compile('decode_rows', step, rows, specs, options);
  }

  private bindRows(executable: Executable): Bound {
    const inputs = { ids: this.ids, timeStep: this.positions };
    return this.compiler.bind(executable, this.state, inputs, [], { logits: null });
  }

  private async compileDrafts(): Promise<Bound & { readonly ids: Int32Array }> {
    const { rows, model, mayDraw } = this.options;
    const count = this.options.draftTokens! + 1;
    const kept = Object.entries(this.compiler.stateSpecs(rows)).find(([, { isPerToken }]) => !isPerToken);
    if (kept)
      throw new RangeError(
        `decode: drafts need a state whose tokens can be taken back, one place each; '${kept[0]}' has none.`,
      );
    const step = ({ ids, timeStep }: Given): Tree<Tensor> => {
      const logits = model.extendStep(ids, { timeStep });
      const flat = tf.reshape(logits, [rows * count, model.vocabSize]) as Tensor;
      const { ids: drawn, logprobs } = sampleIds(onlyDrawable(flat, mayDraw), GREEDY);
      return { drawn, logprobs };
    };
    const ids = new Int32Array(rows * count);
    const specs = { ids: int32(rows, count), timeStep: int32(rows) };
    const executable = await this.compiler.compile('decode_drafts', step, rows, specs, this.sameEngine);
    const outputs = { drawn: null, logprobs: null };
    return {
      ...this.compiler.bind(executable, this.state, { ids, timeStep: this.positions }, [], outputs),
      ids,
    };
  }

  /** The state has the format of the step's engine. */
  private get sameEngine(): CompileOptions {
    return { engine: this.main.executable.runner };
  }

  private get programs(): readonly Bound[] {
    const rows = [this.main, this.apart, this.drafts].filter((bound) => bound !== undefined);
    return [...new Set(rows), ...this.prompts.programs];
  }

  /** Whether it decodes as many rows, of prompts no longer than its caches, with features of its shapes and the same settings by row. */
  fits({
    rows,
    sharing,
    prompt = {},
    rowSettings = [],
  }: Pick<StepperOptions, 'rows' | 'sharing' | 'prompt' | 'rowSettings'>): boolean {
    const own = this.options;
    const hasSettings = (own.rowSettings ?? []).join() === rowSettings.join();
    const hasRoom =
      sharing === undefined ||
      (sharing.promptSize <= own.sharing!.promptSize && sharing.prompts === own.sharing!.prompts);
    const isOwn = ([name, { shape }]: [string, TensorSpec]): boolean =>
      own.prompt?.[name]?.shape.slice(1).join() === shape.slice(1).join();
    return rows === own.rows && hasRoom && hasSettings && Object.entries(prompt).every(isOwn);
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
    const {
      extendStep,
      extendRows,
      extendCandidates,
      extendDrafts,
      extendDrawing,
      prefill,
      reorder,
      isWhole: wholePrompts,
    } = this;
    const drawing = { extendGreedily: extendDrawing, extendSampling: extendDrawing };
    const { rule, sharing, candidates, draftTokens } = this.options;
    // Rows that share a prompt stay with it, and step together.
    const moving = sharing ? {} : { extendRows, reorder };
    return {
      ...{ extendStep, prefill, wholePrompts, ...moving, ...(rule && drawing) },
      ...(candidates && { extendCandidates }),
      ...(draftTokens !== undefined && { extendDrafts }),
    };
  }

  /** Whether prompts are taken whole. */
  private get isWhole(): boolean {
    const { model, sharing, rule } = this.options;
    return sharing !== undefined || rule?.guidance !== undefined || (model.seesWholePrompt ?? false);
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
    if (this.options.candidates)
      return this.extendRows(
        ids,
        ids.map(() => timeStep),
      );
    this.ids.set(ids);
    this.timeStep[0] = timeStep;
    return logitsOf(this.main);
  };

  /** Runs one position of each row; returns the next logits [rows, vocabSize]. */
  readonly extendRows: ExtendRows = async (ids, positions) => {
    this.apart ??= this.bindRows(await this.compileRows(this.sameEngine));
    this.ids.set(ids);
    this.positions.set(positions);
    return logitsOf(this.apart);
  };

  /** Runs one position of each row; returns the likeliest next tokens. Where the program gives candidates. */
  readonly extendCandidates: ExtendCandidates = async (ids, positions) => {
    this.ids.set(ids);
    this.positions.set(positions);
    const outputs = (await this.main.call.run()) as unknown as Record<string, HostTensor>;
    return {
      ids: outputs.candidates!.data as Int32Array,
      logprobs: outputs.logprobs!.data as Float32Array,
      logprobsOf: (outputs.logprobsOf?.data ?? new Float32Array()) as Float32Array,
    };
  };

  /** Runs a token of each row and a draft behind it; returns the likeliest token after each. */
  readonly extendDrafts: ExtendDrafts = async (ids, positions) => {
    this.drafts ??= await this.compileDrafts();
    this.drafts.ids.set(ids);
    this.positions.set(positions);
    const outputs = (await this.drafts.call.run()) as unknown as Record<string, HostTensor>;
    return { ids: outputs.drawn!.data as Int32Array, logprobs: outputs.logprobs!.data as Float32Array };
  };

  /** Runs several positions, each fed the token that was drawn after the one before. Where the program draws. */
  readonly extendDrawing = async (
    ids: Int32Array,
    timeStep: number,
    count: number,
    uniforms?: Float32Array,
    rows?: RowInputs,
  ): Promise<DrawnIds> => {
    const draws = this.draws!;
    this.ids.set(ids);
    draws.set(
      timeStep,
      this.isWhole ? this.starts.map((start) => start + timeStep) : ids.map(() => timeStep),
      uniforms,
      rows,
    );
    this.timeStep[0] = timeStep;
    await this.main.call.run(count);
    return draws.read(timeStep, count);
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

  /** Compiles what `fillRow` calls. */
  prepareRows(): Promise<void> {
    return this.prompts.prepare();
  }

  /**
   * Gives a row, where rows are apart, the state after the tokens of a prompt, which its next step comes behind. Other rows may
   * step between two blocks; one row is filled at a time.
   *
   * @param ids tokens from the first on; none where steps begin with the first token.
   * @param prompt as for `begin`, of one row.
   * @returns the positions of each block, once it is computed.
   * @throws as `begin`.
   */
  fillRow(
    row: number,
    ids: Int32Array,
    prompt?: Readonly<Record<string, HostTensor>>,
  ): AsyncGenerator<number, void, undefined> {
    return this.prompts.fill(row, ids, prompt);
  }

  /** Gives each row the state of another, or its own. */
  readonly reorder: Reorder = (origins, filled) => this.state.reorder(origins, filled);
}

async function logitsOf({ call }: Bound): Promise<Float32Array> {
  const outputs = (await call.run()) as unknown as { logits: { data: Float32Array } };
  return outputs.logits.data;
}

/** Positions of rows at a step, [rows]; those of rows that have ended stay within the sequence. */
const positionsOf = (timeStep: Tensor, starts: Tensor, seqlen: number): Tensor =>
  tf.minimum(tf.add(starts, timeStep), tf.scalar(seqlen - 1, 'int32'));
