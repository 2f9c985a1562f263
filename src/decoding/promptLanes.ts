/** @file Prompts of a decode: their states, and the programs that compute them, block by block or from features of a batch. */
import type { CompileOptions, Executable, HostTensor, Tensor, TensorSpec, Tree } from '../compiler/index.js';
import type { DecodeState } from './decodeState.js';
import type { RowFill } from './rowFill.js';
import {
  type Arrays,
  type Bound,
  type Given,
  int32,
  ofRows,
  type StepPrograms,
  type StepperOptions,
} from './stepPrograms.js';

/** Prompt positions per call, at least where prompts are whole. */
export const PREFILL_STEPS = 64;
/** Positions of the last block of a prompt that goes to a row alone, where it has no more tokens: about as fast as a step. */
const LAST_STEPS = 16;

/** Positions of a block that holds whole prompts of `count` tokens: few sizes, so that few programs are compiled. */
const wholeBlock = (count: number, places: number): number =>
  Math.min(places, PREFILL_STEPS * 2 ** Math.ceil(Math.log2(Math.max(1, count / PREFILL_STEPS))));

/** Prompts of one number of rows: their state, and the programs on it. */
interface PromptLane {
  readonly state: DecodeState;
  /** Tokens of each block and their number in each row, by the block's size. */
  readonly blocks: Map<number, Bound & { readonly ids: Int32Array; readonly lengths: Int32Array }>;
  begin?: Bound & { readonly arrays: Arrays };
}

/** The tokens of prompts, [rows, count], of which each has as many as `lengths` says. */
interface GivenPrompts {
  readonly ids: Int32Array;
  readonly count: number;
  readonly lengths: Int32Array;
}

/** Prompts of any number of rows that divides those of a decode. */
export class PromptLanes {
  private readonly timeStep = new Int32Array(1);
  private readonly lanes = new Map<number, PromptLane>();

  /** @param state that of the decode's rows, in which prompts are computed where each row has its own. */
  constructor(
    private readonly options: StepperOptions,
    private readonly compiler: StepPrograms,
    private readonly state: DecodeState,
    private readonly engine: CompileOptions,
  ) {}

  private laneOf(rows: number, executable: Executable): PromptLane {
    const { state } = this;
    const lane = this.lanes.get(rows) ?? {
      state: rows === this.options.rows ? state : this.compiler.newState(executable, rows, state.prompts),
      blocks: new Map(),
    };
    this.lanes.set(rows, lane);
    return lane;
  }

  private async blockOf(rows: number, steps: number) {
    const found = this.lanes.get(rows)?.blocks.get(steps);
    if (found) return found;
    const { model } = this.options;
    const prefill = ({ ids, timeStep, length }: Given): Tree<Tensor> => {
      model.extendStep(ids, { timeStep, length, ...(model.seesWholePrompt && { prefix: length }) });
      return {};
    };
    const specs = { ids: int32(rows, steps), timeStep: int32(), length: int32(rows) };
    const executable = await this.compiler.compile('decode_prefill', prefill, rows, specs, this.engine);
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
    const executable = await this.compiler.compile('decode_begin', begin, rows, specs, this.engine);
    const names = Object.keys(prompt);
    const given = executable.newInputs(names.map((name) => `prompt.${name}`));
    const arrays = Object.fromEntries(names.map((name, i) => [name, given[i]!]));
    const lane = this.laneOf(rows, executable);
    lane.begin = { ...this.compiler.bind(executable, lane.state, { prompt: arrays }, [], {}), arrays };
    return lane.begin;
  }

  /** The programs that are compiled so far. */
  get programs(): readonly Bound[] {
    return [...this.lanes.values()].flatMap(({ blocks, begin }) => [
      ...blocks.values(),
      ...(begin ? [begin] : []),
    ]);
  }

  /** States of prompts besides that of the decode's rows. */
  get states(): readonly DecodeState[] {
    return [...this.lanes.values()].map(({ state }) => state).filter((state) => state !== this.state);
  }

  /** As `Stepper.begin`. */
  async begin(prompt: Readonly<Record<string, HostTensor>>): Promise<void> {
    const rows = Object.values(prompt)[0]!.shape[0]!;
    await this.compute(prompt, rows);
    this.share(rows, 0);
  }

  /** Takes the first `count` tokens of prompts, or as many as `lengths` says, block by block or at once. */
  async prefill(ids: Int32Array, count: number, lengths: Int32Array): Promise<void> {
    const rows = lengths.length;
    const places = this.compiler.places(rows);
    const size = this.options.model.seesWholePrompt ? wholeBlock(count, places) : PREFILL_STEPS;
    for (let begin = 0; begin < count; begin += size)
      await this.take({ ids, count, lengths }, begin, Math.min(size, places - begin));
    this.share(rows, count);
  }

  /** Compiles the blocks of prompts that go to a row alone. */
  async prepare(): Promise<void> {
    const { model } = this.options;
    // Begun with features, a decode has one token.
    if (model.begin) return;
    const places = this.compiler.places(1);
    for (const steps of model.seesWholePrompt ? [PREFILL_STEPS] : [LAST_STEPS, PREFILL_STEPS])
      await this.blockOf(1, Math.min(steps, places));
  }

  /** As `Stepper.fillRow`, for the tokens before the last one; none where steps begin with the first token. */
  fill(row: number, ids: Int32Array, prompt?: Readonly<Record<string, HostTensor>>): RowFill {
    const count = ids.length;
    const isAlone = this.options.rows === 1;
    const isWhole = this.options.model.seesWholePrompt ?? false;
    const places = this.compiler.places(1);
    let begin = 0;
    const takeNext = async (): Promise<number> => {
      if (begin === 0) {
        (isAlone ? this.state : this.lanes.get(1)?.state)?.clear();
        if (prompt) await this.compute(prompt, 1);
      }
      if (count === 0) return 0;
      const size = count - begin <= LAST_STEPS ? LAST_STEPS : PREFILL_STEPS;
      const steps = Math.min(isWhole ? wholeBlock(count, places) : size, places - begin);
      await this.take({ ids, count, lengths: Int32Array.of(count) }, begin, steps);
      return steps;
    };
    return {
      take: async () => {
        const steps = await takeNext();
        begin += steps;
        const isLast = begin >= count;
        if (isLast && !isAlone)
          this.state.replaceRow(row, count > 0 || prompt ? this.lanes.get(1)!.state : undefined, count);
        return { steps, isLast };
      },
    };
  }

  /** Computes what steps read of the features of prompts. */
  private async compute(prompt: Readonly<Record<string, HostTensor>>, rows: number): Promise<void> {
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
  }

  /** Takes `steps` positions of prompts from `begin` on. */
  private async take({ ids, count, lengths }: GivenPrompts, begin: number, steps: number): Promise<void> {
    const rows = lengths.length;
    const block = await this.blockOf(rows, steps);
    block.ids.fill(0);
    for (let row = 0; row < rows; row++) {
      const tokens = ids.subarray(row * count + begin, row * count + Math.min(count, begin + steps));
      block.ids.set(tokens, row * steps);
      block.lengths[row] = Math.max(0, Math.min(lengths[row]!, begin + steps) - begin);
    }
    this.timeStep[0] = begin;
    await block.call.run();
  }

  /** Gives the state of prompts, of `count` tokens at most, to the rows that continue them. */
  private share(rows: number, count: number): void {
    const lane = this.lanes.get(rows);
    // Prompts of one token have computed nothing.
    if (lane && lane.state !== this.state) this.state.spread(lane.state, count);
  }
}
