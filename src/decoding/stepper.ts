/** @file Stepper: compiled decoding steps of a model, over one decode state. */
import {
  type CompileOptions,
  type HostTensor,
  type Tensor,
  type TensorSpec,
  type Tree,
  tf,
} from '../compiler/index.js';
import { writeAllowed } from './constraints/index.js';
import type { DecodeState } from './decodeState.js';
import type {
  AllowedTokens,
  DecodingModel,
  DrawnIds,
  ExtendCandidates,
  ExtendDraftLogits,
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
import { BlocksBeside, type RowFill } from './rowFill.js';
import {
  candidatesStep,
  draftLogitsStep,
  draftsStep,
  logitsStep,
  onlyDrawable,
  type RowStep,
} from './rowSteps.js';
import { type Bound, type Given, int32, StepPrograms, type StepperOptions } from './stepPrograms.js';

/** A step of rows with the memory of its inputs. */
interface BoundRows extends Bound {
  readonly ids: Int32Array;
  /** Under a constraint. */
  readonly allowed: Int32Array | undefined;
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
  /** The step of rows at one position. */
  private together: Bound | undefined;
  /** Steps of rows at positions of their own, by name. */
  private readonly rowSteps = new Map<string, BoundRows>();
  private prompts!: PromptLanes;
  /** Of the model that drafts. */
  private draft: Stepper | undefined;
  /** Where prompts go to rows while others step. */
  private beside: BlocksBeside | undefined;

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
    await stepper.compileStep();
    stepper.draft = await draftOf(options);
    return stepper;
  }

  private async compileStep(): Promise<void> {
    const { rows, model, rowsApart, candidates, draftTokens } = this.options;
    if (candidates) await this.rowStep(candidatesStep(candidates));
    else if (rowsApart || draftTokens !== undefined) await this.rowStep(logitsStep);
    else await this.compileTogether();
    const parts = [this.options, this.compiler, this.state, this.sameEngine] as const;
    this.prompts = new PromptLanes(...parts);
    if (rowsApart && rows > 1 && !model.begin && !model.seesWholePrompt)
      this.beside = new BlocksBeside(...parts);
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
    this.together = this.compiler.bind(
      executable,
      this.state,
      part(inputs, 1),
      rule ? ['ids', 'timeStep'] : [],
      draws ? part(draws.written, 1) : { logits: null },
    );
  }

  /** A step of rows at positions of their own, compiled at first use. */
  private async rowStep(of: RowStep<unknown>): Promise<BoundRows> {
    const { name, tokens, takesBack, outputs, compute } = of;
    const found = this.rowSteps.get(name);
    if (found) return found;
    const { rows, model, mayDraw } = this.options;
    if (takesBack ?? this.options.takesBack) this.checkTakesBack();
    const step = ({ ids, timeStep, allowed }: Given): Tree<Tensor> => {
      const logits = model.extendStep(ids, { timeStep });
      const own = onlyDrawable(tf.reshape(logits, [rows * tokens, model.vocabSize]) as Tensor, mayDraw);
      return compute(own, allowed);
    };
    const isConstrained = this.options.isConstrained === true && of.isConstrainable === true;
    const byToken = int32(rows * tokens, model.vocabSize);
    const specs = {
      ...{ ids: tokens === 1 ? int32(rows) : int32(rows, tokens), timeStep: int32(rows) },
      ...(isConstrained && { allowed: byToken }),
    };
    const executable = await this.compiler.compile(name, step, rows, specs, this.sameEngine);
    this.state ??= this.compiler.newState(executable, rows);
    const ids = new Int32Array(rows * tokens);
    const allowed = isConstrained ? new Int32Array(byToken.shape[0]! * model.vocabSize) : undefined;
    const bound = this.compiler.bind(
      executable,
      this.state,
      { ids, timeStep: this.positions, ...(allowed && { allowed }) },
      [],
      Object.fromEntries(outputs.map((output) => [output, null])),
    );
    const made = { ...bound, ids, allowed };
    this.rowSteps.set(name, made);
    return made;
  }

  /** @throws RangeError where the state after a token does not have those before it. */
  private checkTakesBack(): void {
    const state = Object.entries(this.compiler.stateSpecs(this.rows));
    const kept = state.find(([, { isPerToken }]) => !isPerToken);
    if (kept)
      throw new RangeError(
        `decode: drafts need a state whose tokens can be taken back, one place each; '${kept[0]}' has none.`,
      );
  }

  /** Runs a step of rows. */
  private async extend<T>(
    step: RowStep<T>,
    ids: Int32Array,
    positions: Int32Array,
    allowed?: AllowedTokens,
  ): Promise<T> {
    const bound = await this.rowStep(step);
    bound.ids.set(ids);
    this.positions.set(positions);
    const { vocabSize } = this.options.model;
    for (const i of bound.allowed ? ids.keys() : [])
      writeAllowed(bound.allowed!, i * vocabSize, vocabSize, allowed?.[i]);
    return step.read((await bound.call.run()) as unknown as Readonly<Record<string, HostTensor>>);
  }

  /** The state has the format of the step's engine. */
  private get sameEngine(): CompileOptions {
    const [first] = this.steps;
    return first ? { engine: first.executable.runner } : {};
  }

  private get steps(): readonly Bound[] {
    return [...(this.together ? [this.together] : []), ...this.rowSteps.values()];
  }

  /** The programs that are compiled so far. */
  get programs(): readonly Bound[] {
    const others = [this.prompts, this.beside, this.draft].flatMap((of) => of?.programs ?? []);
    return [...this.steps, ...others];
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
    for (const state of this.states) state.clear();
  }

  /** Must be called after the parameters have changed. */
  refresh(): void {
    for (const { executable } of this.programs) executable.refresh();
    this.beside?.refresh();
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
      extendDraftLogits,
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
      ...(draftTokens !== undefined && { extendDrafts, extendDraftLogits }),
      ...(this.draft && { draft: this.draft.calls }),
    };
  }

  /** Whether prompts are taken whole. */
  private get isWhole(): boolean {
    const { model, sharing, rule } = this.options;
    return sharing !== undefined || rule?.guidance !== undefined || (model.seesWholePrompt ?? false);
  }

  /** The states of rows and prompts. */
  get states(): readonly DecodeState[] {
    return [this.state, ...[this.prompts, this.beside, this.draft].flatMap((of) => of?.states ?? [])];
  }

  /** Bytes of all states. */
  get stateBytes(): number {
    return this.states.reduce((sum, { byteLength }) => sum + byteLength, 0);
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
    if (!this.together)
      return this.extendRows(
        ids,
        ids.map(() => timeStep),
      );
    this.ids.set(ids);
    this.timeStep[0] = timeStep;
    const outputs = (await this.together.call.run()) as unknown as { logits: { data: Float32Array } };
    return outputs.logits.data;
  };

  /** Runs one position of each row; returns the next logits [rows, vocabSize]. */
  readonly extendRows: ExtendRows = (ids, positions) => this.extend(logitsStep, ids, positions);

  /** Runs one position of each row; returns the likeliest next tokens. Where the program gives candidates. */
  readonly extendCandidates: ExtendCandidates = (ids, positions, allowed) =>
    this.extend(candidatesStep(this.options.candidates!), ids, positions, allowed);

  /** Runs a token of each row and a draft behind it; returns the likeliest token after each. */
  readonly extendDrafts: ExtendDrafts = (ids, positions, allowed) =>
    this.extend(draftsStep(this.options.draftTokens!), ids, positions, allowed);

  /** As extendDrafts; returns the logits after each. */
  readonly extendDraftLogits: ExtendDraftLogits = (ids, positions) =>
    this.extend(draftLogitsStep(this.options.draftTokens!), ids, positions);

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
    await this.together!.call.run(count);
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
  async prepareRows(): Promise<void> {
    await (this.beside ?? this.prompts).prepare();
  }

  /**
   * Gives a row, where rows are apart, the state after the tokens of a prompt, or after those before its last one. Other rows may
   * step between two blocks, or beside them; one row is filled at a time.
   *
   * @param ids tokens from the first on.
   * @param prompt as for `begin`, of one row.
   * @throws as `begin`, in `take`.
   */
  fillRow(row: number, ids: Int32Array, prompt?: Readonly<Record<string, HostTensor>>): RowFill {
    return this.beside?.fill(row, ids) ?? this.prompts.fill(row, ids.subarray(0, -1), prompt);
  }

  /**
   * Gives back the memory of a row's tokens from the first `kept` on, where the row has none of them. It does nothing where caches
   * are small, or an engine has copies of them.
   */
  releaseRow(row: number, kept = 0): void {
    this.state.release(row, kept);
  }

  /** As `releaseRow`, of all rows, and of prompts on their way to one. */
  releaseAll(): void {
    for (const state of this.states) state.releaseAll();
  }

  /** Gives each row the state of another, or its own. */
  readonly reorder: Reorder = (origins, filled) => this.state.reorder(origins, filled);
}

/** The steps of the model that drafts, of the same rows. @throws RangeError where it has other tokens */
async function draftOf({ draft, ...options }: StepperOptions): Promise<Stepper | undefined> {
  if (draft === undefined) return undefined;
  const [own, others] = [draft.model.vocabSize, options.model.vocabSize];
  if (own !== others)
    throw new RangeError(`decode: the model that drafts has ${own} token ids, and the model ${others}.`);
  const { rows, seqlen, mayDraw } = options;
  return Stepper.create({
    ...{ ...draft, rows, seqlen, mayDraw, rule: null, rowsApart: true, takesBack: true },
    compileOptions: (name) => options.compileOptions(`${name}_of_draft`),
  });
}

/** Positions of rows at a step, [rows]; those of rows that have ended stay within the sequence. */
const positionsOf = (timeStep: Tensor, starts: Tensor, seqlen: number): Tensor =>
  tf.minimum(tf.add(starts, timeStep), tf.scalar(seqlen - 1, 'int32'));
