/** @file Taps of a training run: a program of its own that reads activations and gradients before chosen steps. */
import { join } from 'node:path';
import { type ArrayTensor, encodeSafetensors } from '../checkpoints/index.js';
import { type BoundCall, compile, formatSpec, type HostTensor } from '../compiler/index.js';
import { didYouMean } from '../hparams/index.js';
import { TAP_STATISTICS, Taps } from '../layers/index.js';
import { compileOptions, JobError, type JobOptions, type TapOptions, writeJobFile } from '../runs/index.js';
import { columnsOf, padded } from '../system/text/index.js';
import { type SingleTask, tapStep } from '../tasks/index.js';
import { type BoundStep, stepNumber, trainSpecs } from './stepCalls.js';
import type { FlatTrainState } from './taskState.js';

/** Results of one tensor. */
interface Told {
  readonly statistics: HostTensor;
  readonly values?: HostTensor;
}

/** Results of the program, by tap. */
type TapResults = Readonly<Record<string, { readonly activation: Told; readonly gradient?: Told }>>;

/** Text of a glob as a regular expression: `**` crosses names, and at the end includes what stands before it. */
function regexOf(glob: string): RegExp {
  const source = glob.replace(/\/\*\*$|\*\*\/|\*\*|\*|[^*/\w]/g, (part) => {
    if (part === '/**') return '(?:[/.#].*)?';
    if (part === '**/') return '(?:.*/)?';
    if (part === '**') return '.*';
    return part === '*' ? '[^/]*' : `\\${part}`;
  });
  return new RegExp(`^${source}$`);
}

/** Reads taps in a step that training is about to take, with the engine that takes it, from the same memory. */
export class StepTaps {
  private constructor(
    private readonly options: JobOptions,
    private readonly taps: TapOptions,
    private readonly call: BoundCall,
    /** Dtype and shape of each activation. */
    private readonly specs: Taps['specs'],
  ) {}

  /** @param step the compiled step, whose first batch and key the taps read. @throws JobError where a pattern names nothing */
  static async create(
    options: JobOptions,
    taps: TapOptions,
    task: SingleTask,
    state: FlatTrainState,
    { buffers, keys, steps }: Pick<BoundStep, 'buffers' | 'keys' | 'steps'>,
  ): Promise<StepTaps> {
    const patterns = taps.patterns.map((pattern) => ({ pattern, regex: regexOf(pattern) }));
    const isWanted = (name: string) => patterns.some(({ regex }) => regex.test(name));
    let traced = new Taps(isWanted);
    const step = tapStep(task, () => {
      traced = new Taps(isWanted, taps.values);
      return traced;
    });
    const executable = await compile(
      step,
      trainSpecs(task, state, buffers),
      compileOptions(options, 'tap_step'),
    );
    const { names, specs } = traced;
    const unmatched = patterns.find(({ regex }) => !names.some((name) => regex.test(name)));
    if (unmatched !== undefined) {
      const { pattern } = unmatched;
      throw new JobError(
        `--tap=${pattern}: no layer or tap of the training step has such a path.${didYouMean(pattern, names)} ` +
          `There are: ${names.join(', ')}.`,
      );
    }
    const batch = buffers.viewsAt(0);
    const first = { prngKey: keys.subarray(0, 2), ...stepNumber(task, steps.subarray(0, 1)) };
    const call = executable.bind({ inputs: { params: state.views, batch, ...first } });
    return new StepTaps(options, taps, call, specs);
  }

  /** Whether to read before the step, counted from 1. */
  isAt(step: number): boolean {
    return this.taps.isTapped(step);
  }

  /** Reads the step that the memory holds, which is not taken yet. @returns lines for people */
  async read(step: number): Promise<string[]> {
    const results = (await this.call.run()) as unknown as TapResults;
    const header = ['', '', ...TAP_STATISTICS];
    const rows = Object.entries(results).flatMap(([name, { activation, gradient }]) => [
      [name, formatSpec(this.specs[name]!), ...cellsOf(activation)],
      [
        '  gradient',
        ...(gradient === undefined ? ['the loss does not depend on it'] : ['', ...cellsOf(gradient)]),
      ],
    ]);
    const lines = [`Taps of step ${step}, before its update:`, ...aligned([header, ...rows])];
    return this.taps.values ? [...lines, `Values are in ${this.#write(step, results)}`] : lines;
  }

  #write(step: number, results: TapResults): string {
    const path = join(this.options.jobLogDir, 'taps', `step_${String(step).padStart(8, '0')}.safetensors`);
    const tensors: Record<string, ArrayTensor> = {};
    for (const [name, { activation, gradient }] of Object.entries(results)) {
      tensors[name] = activation.values!;
      if (gradient !== undefined) tensors[`${name}:gradient`] = gradient.values!;
    }
    writeJobFile(path, encodeSafetensors(tensors));
    return path;
  }
}

const cellsOf = ({ statistics }: Told): string[] =>
  Array.from(statistics.data, (value) => String(Number(value.toPrecision(4))));

/** Rows as lines with columns of one width: names and shapes on the left, numbers on the right of theirs. */
function aligned(rows: readonly (readonly string[])[]): string[] {
  const { widths } = columnsOf(rows, undefined);
  const columns = { widths, right: widths.map((_, column) => column > 1) };
  return rows.map((row) => padded(row, columns).join('  ').trimEnd());
}
