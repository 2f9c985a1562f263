/** @file Prompts on their way to a row: blocks of them are computed in one program with a step of the other rows. */
import { type CompileOptions, type Tensor, type Tree, tf } from '../compiler/index.js';
import { runInContext } from '../layers/index.js';
import { lastLogits } from './decodable.js';
import type { DecodeState } from './decodeState.js';
import { PrefixPages } from './prefixPages.js';
import { onlyDrawable } from './rowSteps.js';
import { type Bound, type Given, int32, type StepPrograms, type StepperOptions } from './stepPrograms.js';

/** Positions of blocks, and the fewest tokens that are left where one is taken: rows wait for long ones, and weights are read for each. */
const BLOCKS = [
  { steps: 64, least: 65 },
  { steps: 32, least: 17 },
  { steps: 8, least: 1 },
];
const PAGE = BLOCKS[0]!.steps;

/** Rows whose tokens have as much memory as the pages of prompts. */
const ROWS_OF_PAGES = 2;

/** A token of each row and its position, both [rows]. */
interface RowsAt {
  readonly ids: Int32Array;
  readonly positions: Int32Array;
}

/** What a block gives. */
export interface FilledBlock {
  /** Its positions. */
  readonly steps: number;
  /** Whether the row has the state of the whole prompt now. */
  readonly isLast: boolean;
  /** Logits of the rows that have stepped beside it, [rows * V]; absent where none has. */
  readonly logits?: Float32Array | undefined;
  /** Behind the last block: logits of the token after the prompt, [V]; absent where its last token is left for a step. */
  readonly next?: Float32Array | undefined;
}

/** A prompt on its way to a row. */
export interface RowFill {
  /** Computes its next block. @param rows the tokens of a step, which may be computed beside it; none where no row steps */
  take(rows: RowsAt | undefined): Promise<FilledBlock>;
}

interface Block extends Bound {
  /** Of the step: tokens and positions of rows. */
  readonly ids: Int32Array;
  /** Of the block: its tokens, and how many of them are the prompt's. */
  readonly tokens: Int32Array;
  readonly length: Int32Array;
}

/**
 * Programs that take a block of a prompt, whose state is aside, beside a step of all rows. Both multiply by each weight at once,
 * which then is read from memory once: a step of few rows waits for memory, and a block for arithmetic (Sarathi, Agrawal et
 * al. 2023).
 */
export class BlocksBeside {
  readonly #blocks = new Map<number, Block>();
  #alone: Omit<Block, 'ids'> | undefined;
  readonly #positions: Int32Array;
  readonly #begin = new Int32Array(1);
  #aside: DecodeState | undefined;
  readonly #pages: PrefixPages;

  /** @param state that of the rows. */
  constructor(
    private readonly options: StepperOptions,
    private readonly compiler: StepPrograms,
    private readonly state: DecodeState,
    private readonly engine: CompileOptions,
  ) {
    this.#positions = new Int32Array(options.rows);
    const pages = state.isPerToken ? (ROWS_OF_PAGES * options.seqlen) / PAGE : 0;
    this.#pages = new PrefixPages(Math.floor(pages), PAGE);
  }

  /** Must be called after the parameters have changed. */
  refresh(): void {
    this.#pages.clear();
  }

  /** The programs that are compiled so far. */
  get programs(): readonly Bound[] {
    return [...this.#blocks.values(), ...(this.#alone ? [this.#alone] : [])];
  }

  get states(): readonly DecodeState[] {
    return this.#aside ? [this.#aside] : [];
  }

  /** Compiles the blocks. */
  async prepare(): Promise<void> {
    const places = this.compiler.places(1);
    for (const { steps } of BLOCKS) await this.#blockOf(Math.min(steps, places));
    if (this.#aside && places > PAGE) await this.#blockAlone(this.#aside);
  }

  /** A page where no row steps, and others follow it, so that no logits are needed: the step takes a third of the time of both. */
  async #blockAlone(aside: DecodeState): Promise<Omit<Block, 'ids'>> {
    if (this.#alone) return this.#alone;
    const { model } = this.options;
    const prefill = ({ tokens, begin, length }: Given): Tree<Tensor> => {
      model.extendStep(tokens, { timeStep: begin, length });
      return {};
    };
    const specs = { tokens: int32(1, PAGE), begin: int32(), length: int32(1) };
    const executable = await this.compiler.compile('decode_block', prefill, 1, specs, this.engine);
    const arrays = { tokens: new Int32Array(PAGE), length: new Int32Array(1) };
    const bound = this.compiler.bind(executable, aside, { ...arrays, begin: this.#begin }, [], {});
    this.#alone = { ...bound, ...arrays };
    return this.#alone;
  }

  async #blockOf(steps: number): Promise<Block> {
    const found = this.#blocks.get(steps);
    if (found) return found;
    const { rows, model, mayDraw } = this.options;
    const step = ({ ids, timeStep, params, aside, tokens, begin, length }: Given): Tree<Tensor> => {
      const logits = model.extendStep(ids, { timeStep });
      const decodeState = { ...aside };
      const next = runInContext({ theta: params, doEval: true, decodeState }, () =>
        lastLogits(model, tokens, { timeStep: begin, length }),
      );
      return { logits: onlyDrawable(tf.concat([logits, next]), mayDraw), aside: decodeState };
    };
    const specs = { ids: int32(rows), timeStep: int32(rows) };
    const more = { tokens: int32(1, steps), begin: int32(), length: int32(1) };
    const executable = await this.compiler.compile(
      'decode_beside',
      step,
      rows,
      { ...specs, ...more },
      { ...this.engine, joinsRows: true },
      true,
    );
    this.#aside ??= this.compiler.newState(executable, 1, {}, 'aside');
    const arrays = { ids: new Int32Array(rows), tokens: new Int32Array(steps), length: new Int32Array(1) };
    const inputs = { ...arrays, timeStep: this.#positions, begin: this.#begin };
    const bound = this.compiler.bind(executable, this.state, inputs, [], { logits: null }, this.#aside);
    const block = { ...bound, ...arrays };
    this.#blocks.set(steps, block);
    return block;
  }

  /**
   * Begins with a prompt, one at a time.
   *
   * @param prompt its tokens, one at least.
   */
  fill(row: number, prompt: Int32Array): RowFill {
    const count = prompt.length;
    const pages = this.#pages.begin(prompt);
    let begin = 0;
    return {
      take: async (rows) => {
        if (begin === 0) {
          this.#aside?.clearRows();
          this.#aside?.release(0, count);
        }
        // A whole block behind which there are others; the last one gives logits.
        const isPage = () => begin + PAGE < count;
        while (this.#aside && isPage() && pages.take(this.#aside, begin)) begin += PAGE;
        const { steps: size } = BLOCKS.find(({ least }) => count - begin >= least)!;
        const steps = Math.min(size, this.compiler.places(1) - begin);
        const block = await this.#blockFor(steps, rows);
        const taken = prompt.subarray(begin, begin + steps);
        block.tokens.fill(0);
        block.tokens.set(taken);
        block.length[0] = taken.length;
        this.#begin[0] = begin;
        const given = (await block.call.run()) as unknown as { logits?: { data: Float32Array } };
        const logits = given.logits?.data;
        if (isPage()) pages.keep(this.#aside!, begin);
        begin += steps;
        const isLast = begin >= count;
        if (isLast) {
          this.state.replaceRow(row, this.#aside, count);
          pages.end();
        }
        const end = (logits?.length ?? 0) - this.options.model.vocabSize;
        return {
          ...{ steps, isLast },
          ...(rows && { logits: logits?.subarray(0, end) }),
          ...(isLast && { next: logits?.subarray(end) }),
        };
      },
    };
  }

  /** The program of a block, with the tokens of the step. */
  async #blockFor(steps: number, rows: RowsAt | undefined): Promise<Omit<Block, 'ids'>> {
    if (!rows && steps === PAGE && this.#aside) return this.#blockAlone(this.#aside);
    const block = await this.#blockOf(steps);
    if (rows) block.ids.set(rows.ids);
    else block.ids.fill(0);
    if (rows) this.#positions.set(rows.positions);
    else this.#positions.fill(0);
    return block;
  }
}
