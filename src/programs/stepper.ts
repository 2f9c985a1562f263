/** @file Compiled decoding steps of a language model, over one key-value cache. */
import {
  type BoundArray,
  type BoundCall,
  type CompileOptions,
  compile,
  type Executable,
  ops,
  type Tensor,
  type TensorSpec,
  type Tree,
  tf,
} from '../compiler/index.js';
import {
  type DrawnIds,
  type ExtendStep,
  isRandom,
  type Prefill,
  type SamplingRule,
  sampleIds,
} from '../decoding/index.js';
import { runInContext } from '../layers/index.js';
import type { LanguageModel } from '../models/index.js';
import { type FlatParams, paramSpecs } from './taskState.js';

/** Prompt positions per call. */
export const PREFILL_STEPS = 64;

/** The model and the shape of its decodes. */
export interface StepperOptions {
  readonly model: LanguageModel;
  readonly params: FlatParams;
  /** Sequences per batch. */
  readonly rows: number;
  /** Length of the longest sequence, prompt included. */
  readonly seqlen: number;
  /** The rule by which the program draws tokens, so that logits stay within it; null gives logits. */
  readonly rule: SamplingRule | null;
  /** Whether an id may be drawn; of others the logits are -Infinity. Default: all may. */
  readonly mayDraw?: ((id: number) => boolean) | undefined;
  /** Compiler options by program name. */
  readonly compileOptions: (name: string) => CompileOptions;
}

type Tensors = Record<string, Tensor>;
type Arrays = Record<string, BoundArray>;

/** Arguments of the programs. */
interface Given {
  readonly params: Tensors;
  readonly state: Tensors;
  readonly ids: Tensor;
  readonly timeStep: Tensor;
  /** Where the program draws: the tokens so far and their log-probabilities, both [seqlen, rows]. */
  readonly drawn: Tensor;
  readonly logprobs: Tensor;
  /** Where it draws at random: the number by which the token after each position is drawn, [seqlen, rows]. */
  readonly uniforms: Tensor;
}

/** Logits [rows, V] with -Infinity at the ids that may not be drawn: those that a padded vocabulary has beyond its tokens. */
function onlyDrawable(logits: Tensor, mayDraw: (id: number) => boolean = () => true): Tensor {
  const drawable = Array.from({ length: logits.shape[1]! }, (_, id) => mayDraw(id));
  if (drawable.every(Boolean)) return logits;
  const never = tf.fill(logits.shape, Number.NEGATIVE_INFINITY);
  return tf.where(tf.expandDims(tf.tensor1d(drawable, 'bool')), logits, never) as Tensor;
}

/** A program and its bound call. */
interface Bound {
  readonly executable: Executable;
  readonly call: BoundCall;
}

/**
 * A model's decode state, and the programs on it: one token per row, runs of drawn tokens, and blocks of prompt
 * tokens.
 */
export class Stepper {
  readonly rows: number;
  private readonly ids: Int32Array;
  private readonly timeStep = new Int32Array(1);
  private readonly drawn: Int32Array;
  private readonly logprobs: Float32Array;
  private readonly uniforms: Float32Array;
  private state: Arrays = {};
  private main!: Bound;
  private prompts: Bound | null = null;
  private promptIds = new Int32Array(0);

  private constructor(private readonly options: StepperOptions) {
    const { rows, seqlen } = options;
    this.rows = rows;
    this.ids = new Int32Array(rows);
    this.drawn = new Int32Array(rows * seqlen);
    this.logprobs = new Float32Array(rows * seqlen);
    this.uniforms = new Float32Array(rows * seqlen);
  }

  /** Compiles the step; the prompt program is compiled at first use. */
  static async create(options: StepperOptions): Promise<Stepper> {
    const stepper = new Stepper({ ...options, seqlen: Math.max(1, options.seqlen) });
    await stepper.compileStep();
    return stepper;
  }

  private get stateSpecs() {
    return this.options.model.initialDecodeState(this.rows, this.options.seqlen);
  }

  private async compileStep(): Promise<void> {
    const { rule, rows, seqlen, model, mayDraw } = this.options;
    const hasNumbers = rule !== null && isRandom(rule);
    const step = ({ ids, timeStep, drawn, logprobs, uniforms }: Given): Tree<Tensor> => {
      const logits = onlyDrawable(model.extendStep(ids, timeStep), mayDraw);
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
      ids: { shape: [rows], dtype: 'int32' },
      ...(rule && { drawn: byPosition('int32'), logprobs: byPosition('float32') }),
      ...(hasNumbers && { uniforms: byPosition('float32') }),
    };
    const executable = await this.compile('decode_step', step, specs as Tree<TensorSpec>, {});
    const names = Object.keys(this.stateSpecs);
    const arrays = executable.newInputs(names.map((name) => `state.${name}`));
    this.state = Object.fromEntries(names.map((name, i) => [name, arrays[i]!]));
    const { ids, drawn, logprobs, uniforms } = this;
    this.main = this.bind(
      executable,
      { ids, ...(rule && { drawn, logprobs }), ...(hasNumbers && { uniforms }) },
      rule ? ['ids', 'timeStep'] : [],
      rule ? { drawn, logprobs } : { logits: null },
    );
  }

  private async compilePrefill(): Promise<Bound> {
    const { rows, seqlen, model } = this.options;
    const steps = Math.min(PREFILL_STEPS, seqlen);
    const prefill = ({ ids, timeStep }: Given): Tree<Tensor> => {
      model.extendStep(ids, timeStep);
      return {};
    };
    // The state has the format of the step's engine.
    const { runner } = this.main.executable;
    const same = runner === 'wasm' ? 'onnx' : runner;
    const specs = { ids: { shape: [rows, steps], dtype: 'int32' as const } };
    const executable = await this.compile('decode_prefill', prefill, specs, { engine: same });
    this.promptIds = new Int32Array(rows * steps);
    return this.bind(executable, { ids: this.promptIds }, [], {});
  }

  /** Compiles a function of the model that reads and replaces the state. */
  private compile(
    name: string,
    f: (given: Given) => Tree<Tensor>,
    specs: Tree<TensorSpec>,
    extra: CompileOptions,
  ): Promise<Executable> {
    const { params, compileOptions } = this.options;
    const state = this.stateSpecs;
    const rounded = Object.keys(state).filter((path) => state[path]!.rounded);
    const inputs = {
      params: paramSpecs(params),
      timeStep: { shape: [], dtype: 'int32' },
      state: state as Record<string, TensorSpec>,
      ...(specs as Record<string, TensorSpec>),
    };
    const program = (given: Given): Tree<Tensor> => {
      const decodeState = { ...given.state };
      const context = { theta: given.params, doEval: true, decodeState };
      const results = runInContext(context, () => f(given)) as Record<string, Tensor>;
      return { ...results, state: decodeState };
    };
    return compile(program, inputs as Tree<TensorSpec>, {
      ...compileOptions(name),
      frozen: ['params'],
      halves: rounded.map((path) => `state.${path}`),
      ...extra,
    });
  }

  /**
   * Binds a program to the shared state.
   *
   * @param advanced outputs that become inputs of the next run.
   * @param replaced outputs, besides the state, that share memory with inputs where the engine updates slices in place.
   */
  private bind(
    executable: Executable,
    inputs: Arrays,
    advanced: readonly string[],
    replaced: Record<string, BoundArray | null>,
  ): Bound {
    const { params } = this.options;
    const { state, timeStep } = this;
    const inPlace = executable.updatesInPlace;
    const own = Object.fromEntries(advanced.map((name) => [name, null]));
    const copied = [
      ...Object.keys(state).map((name) => `state.${name}`),
      ...Object.keys(replaced).filter((name) => replaced[name] !== null),
    ];
    const nulls = (arrays: object) => Object.fromEntries(Object.keys(arrays).map((name) => [name, null]));
    const call = executable.bind({
      inputs: { params: params.views, timeStep, state, ...inputs },
      outputs: { ...own, ...(inPlace ? replaced : nulls(replaced)), state: inPlace ? state : nulls(state) },
      carried: Object.fromEntries([...advanced, ...(inPlace ? [] : copied)].map((name) => [name, name])),
    });
    return { executable, call };
  }

  /** Clears the cache. */
  reset(): void {
    for (const array of Object.values(this.state)) array.fill(0);
  }

  /** Must be called after the parameters have changed. */
  refresh(): void {
    this.main.executable.refresh();
    this.prompts?.executable.refresh();
  }

  async dispose(): Promise<void> {
    await this.main.executable.dispose();
    await this.prompts?.executable.dispose();
  }

  /** Runs one position; returns the next logits [rows, vocabSize]. Where the program does not draw. */
  readonly extendStep: ExtendStep = async (ids, timeStep) => {
    this.ids.set(ids);
    this.timeStep[0] = timeStep;
    const outputs = (await this.main.call.run()) as unknown as { logits: { data: Float32Array } };
    return outputs.logits.data;
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

  /** Fills the cache with the first `count` positions of all rows. */
  readonly prefill: Prefill = async (ids, count) => {
    this.prompts ??= await this.compilePrefill();
    const { rows, promptIds } = this;
    const { seqlen } = this.options;
    const steps = promptIds.length / rows;
    for (let begin = 0; begin < count; begin += steps) {
      // Entries behind the prompt are overwritten before being read. The last positions may be computed twice.
      const first = Math.min(begin, seqlen - steps);
      promptIds.fill(0);
      for (let row = 0; row < rows; row++)
        promptIds.set(
          ids.subarray(row * count + first, row * count + Math.min(count, first + steps)),
          row * steps,
        );
      this.timeStep[0] = first;
      await this.prompts.call.run();
    }
  };
}
