/** @file Programs on the state of a decode: their compilation, and the memory that they are bound to. */
import {
  type BoundArray,
  type BoundCall,
  type CompileOptions,
  compile,
  type Executable,
  type FlatArray,
  type FlatLayout,
  layoutSpecs,
  type Tensor,
  type TensorSpec,
  type Tree,
} from '../compiler/index.js';
import { type DecodeStateSpec, runInContext } from '../layers/index.js';
import type { Decodable } from './decodable.js';
import { bytesOf, DecodeState } from './decodeState.js';
import type { RowSettings } from './sampledIds.js';
import type { SamplingRule } from './sampling.js';

/** The sizes of caches where consecutive rows share the cache of a prompt, and have one of their own for tokens behind it. */
export interface PromptSharing {
  /** Prompts of a batch, a divisor of its rows. */
  readonly prompts: number;
  /** Tokens of a prompt before its last, at most. */
  readonly promptSize: number;
  /** Steps from the last token of a prompt on, at most. */
  readonly steps: number;
}

/** The next tokens that a step gives in the place of logits. */
export interface CandidateRule {
  /** Likeliest tokens of each row. */
  readonly count: number;
  /** Ids whose log-probabilities it gives besides. */
  readonly ids: readonly number[];
}

/** The model and the shape of its decodes. */
export interface StepperOptions {
  readonly model: Decodable;
  /** Every variable by path. */
  readonly params: {
    readonly layout: FlatLayout;
    readonly views: Readonly<Record<string, FlatArray>>;
  };
  /** Sequences per batch. */
  readonly rows: number;
  /** Length of the longest sequence, prompt included. */
  readonly seqlen: number;
  /** Specs of the arrays of the model's `promptNames`, for any number of rows. */
  readonly prompt?: Readonly<Record<string, TensorSpec>> | undefined;
  /** Rows that share prompts, where they do. */
  readonly sharing?: PromptSharing | undefined;
  /** Whether each row is at a position of its own in all steps, which `extendRows` takes; the program draws nothing then. */
  readonly rowsApart?: boolean | undefined;
  /** The rule by which the program draws tokens, so that logits stay within it; null gives logits. */
  readonly rule: SamplingRule | null;
  /** Where steps give candidates, with rows at positions of their own: which; `rule` is null then. */
  readonly candidates?: CandidateRule | undefined;
  /** Tokens of the drafts that a call takes, where there are such. */
  readonly draftTokens?: number | undefined;
  /** A model that drafts tokens for this one. */
  readonly draft?: Pick<StepperOptions, 'model' | 'params'> | undefined;
  /** Whether later steps of a row may be at earlier positions, with `rowsApart`: what was behind these is taken back. */
  readonly takesBack?: boolean | undefined;
  /** Whether tokens are drawn under a constraint, which allows each row some of them. */
  readonly isConstrained?: boolean | undefined;
  /** Names of the rule's settings that rows have of their own; default none. */
  readonly rowSettings?: readonly (keyof RowSettings<unknown>)[] | undefined;
  /** Whether an id may be drawn; of others the logits are -Infinity. Default: all may. */
  readonly mayDraw?: ((id: number) => boolean) | undefined;
  /** Compiler options by program name. */
  readonly compileOptions: (name: string) => CompileOptions;
}

/**
 * Bytes of the tokens of all rows from which they are in small pages. Below it the memory is worth less than the 2 to 6 % of a
 * step that large pages save where it reads long caches.
 */
const PAGED_FROM = 1 << 30;

type Tensors = Record<string, Tensor>;
export type Arrays = Record<string, BoundArray>;

/** Arguments of the programs. */
export interface Given {
  readonly params: Tensors;
  readonly state: Tensors;
  readonly ids: Tensor;
  readonly timeStep: Tensor;
  /** Of a block of prompts: the tokens that each row has in it. */
  readonly length: Tensor;
  /** Behind whole prompts: the position of each row at step 0. */
  readonly starts: Tensor;
  /** Where rows share prompts: the state of these, and their lengths without their last tokens. */
  readonly promptState: Tensors;
  readonly promptLength: Tensor;
  readonly prompt: Tensors;
  /** Of a block of a prompt beside a step: the prompt's state, its tokens [1, steps], and the position of the first. */
  readonly aside: Tensors;
  readonly tokens: Tensor;
  readonly begin: Tensor;
  /** Where the program draws: the tokens so far and their log-probabilities, both [seqlen, rows]. */
  readonly drawn: Tensor;
  readonly logprobs: Tensor;
  /** Where it draws at random: the number by which the token after each position is drawn, [seqlen, rows]. */
  readonly uniforms: Tensor;
  /** Where the rule has adjustments: lengths of prompts, [rows], and ids of prompts and of continuations, [rows, V]. */
  readonly promptLengths: Tensor;
  readonly prompted: Tensor;
  readonly counts: Tensor;
  /** Under a constraint: above 0 for the tokens that each row may draw, [rows, V]. */
  readonly allowed: Tensor;
  /** Settings that rows have of their own, [rows]. */
  readonly temperature: Tensor;
  readonly k: Tensor;
  readonly p: Tensor;
}

/** A program and its bound call. */
export interface Bound {
  readonly executable: Executable;
  readonly call: BoundCall;
}

/** The spec of whole numbers. */
export const int32 = (...shape: number[]) => ({ shape, dtype: 'int32' as const });

/** Specs with another first axis. */
export const ofRows = (
  specs: Readonly<Record<string, TensorSpec>>,
  rows: number,
): Record<string, TensorSpec> =>
  Object.fromEntries(
    Object.entries(specs).map(([name, { shape, dtype }]) => [
      name,
      { shape: [rows, ...shape.slice(1)], dtype },
    ]),
  );

/** Compiler of one model's programs, bound to its state. */
export class StepPrograms {
  constructor(private readonly options: StepperOptions) {}

  /** Positions that the cache of `rows` rows has places for: of prompts, of continuations, or of whole sequences. */
  places(rows: number): number {
    const { seqlen, sharing } = this.options;
    if (!sharing) return seqlen;
    return rows === sharing.prompts ? sharing.promptSize : sharing.steps;
  }

  /** Specs of the state of `rows` rows, by path. */
  stateSpecs(rows: number): Record<string, DecodeStateSpec> {
    const { model, seqlen, prompt, sharing } = this.options;
    const specsFor = (length: number) =>
      model.initialDecodeState(rows, length, prompt && ofRows(prompt, rows));
    const whole = specsFor(seqlen);
    if (!sharing) return whole;
    const parts = specsFor(this.places(rows));
    const chosen = ([path, spec]: [string, DecodeStateSpec]) => [path, spec.isPerToken ? parts[path]! : spec];
    return Object.fromEntries(Object.entries(whole).map(chosen));
  }

  /** Whether memory for tokens is taken from the system and given back with each, rather than for all places of the rows. */
  private get isPaged(): boolean {
    const { rows, model, seqlen, prompt } = this.options;
    const specs = Object.values(model.initialDecodeState(rows, seqlen, prompt && ofRows(prompt, rows)));
    return bytesOf(specs.filter(({ isPerToken }) => isPerToken)) >= PAGED_FROM;
  }

  /** Specs of the state of prompts that the steps of `rows` rows read. */
  private promptSpecs(rows: number): Record<string, DecodeStateSpec> {
    const { sharing } = this.options;
    if (!sharing || rows === sharing.prompts) return {};
    return Object.fromEntries(
      Object.entries(this.stateSpecs(sharing.prompts)).filter(([, { isPerToken }]) => isPerToken),
    );
  }

  /**
   * A state of `rows` rows, in the format of a program.
   *
   * @param given arrays of it that other programs have already.
   * @param tree the name of its inputs in the program.
   */
  newState(
    executable: Executable,
    rows: number,
    given: Readonly<Record<string, BoundArray>> = {},
    tree: 'state' | 'aside' = 'state',
  ): DecodeState {
    const newArrays = (of: string, names: readonly string[]) => {
      const arrays = executable.newInputs(names.map((name) => `${of}.${name}`));
      return Object.fromEntries(names.map((name, i) => [name, arrays[i]!]));
    };
    const specs = this.stateSpecs(rows);
    const pages = this.isPaged ? executable.pages : undefined;
    const names = Object.keys(specs).filter((name) => !(name in given));
    const isPaged = (name: string): boolean => pages !== undefined && specs[name]!.isPerToken === true;
    // Each has a buffer of its own: a system may refuse one that is larger than its memory, though little of it be written.
    const paged = Object.assign(
      {},
      ...names.filter(isPaged).map((name) => newArrays(tree, [name])),
    ) as Arrays;
    pages?.keepSmall(Object.values(paged));
    const others = newArrays(
      tree,
      names.filter((name) => !isPaged(name)),
    );
    return new DecodeState(
      specs,
      { ...paged, ...others, ...given },
      newArrays('promptState', Object.keys(this.promptSpecs(rows))),
      pages,
    );
  }

  /**
   * Compiles a function of the model that reads and replaces the state of `rows` rows.
   *
   * @param aside whether it has the state of one more row, of a prompt.
   */
  compile(
    name: string,
    f: (given: Given) => Tree<Tensor>,
    rows: number,
    specs: Readonly<Record<string, Tree<TensorSpec>>>,
    extra: CompileOptions,
    aside = false,
  ): Promise<Executable> {
    const { params, compileOptions } = this.options;
    const trees = {
      ...{ state: this.stateSpecs(rows), promptState: this.promptSpecs(rows) },
      ...(aside && { aside: this.stateSpecs(1) }),
    };
    const rounded = Object.entries(trees).flatMap(([tree, state]) =>
      Object.entries(state).flatMap(([path, { roundedTo }]) =>
        roundedTo === undefined ? [] : [[`${tree}.${path}`, roundedTo] as const],
      ),
    );
    const inputs = { params: layoutSpecs(params.layout), ...trees, ...specs };
    const program = (given: Given): Tree<Tensor> => {
      const decodeState = { ...given.state };
      const { params: theta, promptState } = given;
      const context = { theta, doEval: true, decodeState, promptState };
      const results = runInContext(context, () => f(given)) as Record<string, Tensor>;
      return { ...results, state: decodeState };
    };
    return compile(program, inputs as Tree<TensorSpec>, {
      ...compileOptions(name),
      frozen: ['params'],
      storages: Object.fromEntries(rounded),
      ...extra,
    });
  }

  /**
   * Binds a program to a state.
   *
   * @param advanced outputs that become inputs of the next run.
   * @param replaced outputs, besides the state, that share memory with inputs where the engine updates slices in place.
   * @param aside the state of a prompt, where the program has one.
   */
  bind(
    executable: Executable,
    { arrays: state, prompts: promptState }: DecodeState,
    inputs: Tree<BoundArray>,
    advanced: readonly string[],
    replaced: Record<string, BoundArray | null>,
    aside?: DecodeState,
  ): Bound {
    const inPlace = executable.updatesInPlace;
    const own = Object.fromEntries(advanced.map((name) => [name, null]));
    const states = { state, ...(aside && { aside: aside.arrays }) };
    const copied = [
      ...Object.entries(states).flatMap(([tree, arrays]) =>
        Object.keys(arrays).map((name) => `${tree}.${name}`),
      ),
      ...Object.keys(replaced).filter((name) => replaced[name] !== null),
    ];
    const nulls = (arrays: object) => Object.fromEntries(Object.keys(arrays).map((name) => [name, null]));
    const call = executable.bind({
      inputs: {
        ...{ params: this.options.params.views, ...states, promptState },
        ...(inputs as Record<string, Tree<BoundArray>>),
      },
      outputs: {
        ...{ ...own, ...(inPlace ? replaced : nulls(replaced)) },
        ...Object.fromEntries(
          Object.entries(states).map(([tree, arrays]) => [tree, inPlace ? arrays : nulls(arrays)]),
        ),
      },
      carried: Object.fromEntries([...advanced, ...(inPlace ? [] : copied)].map((name) => [name, name])),
    });
    return { executable, call };
  }
}
