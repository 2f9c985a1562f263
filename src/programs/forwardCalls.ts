/** @file Forward passes of a task without gradients, one for each shape of batches: compiled, or op by op under --debug=eager. */
import {
  type BoundCall,
  compile,
  type Executable,
  firstNonFinite,
  type HostTensor,
  layoutSpecs,
  type PrngKey,
  runEagerly,
  type Tensor,
  type TensorSpec,
  type Tree,
} from '../compiler/index.js';
import { type Batch, specsOf } from '../inputs/index.js';
import { compileOptions, type JobOptions, slowUnit, timed } from '../runs/index.js';
import type { SingleTask, TrainInputs } from '../tasks/index.js';
import { BatchBuffers, badIndexError, reservedId } from './batchBuffers.js';
import { describeNonFinite } from './invalidSteps.js';
import { type AskedPass, type FlatParams, hostParams } from './taskState.js';

/** A pass over a batch. */
export interface ForwardParts {
  readonly options: JobOptions;
  readonly task: SingleTask;
  readonly params: FlatParams;
  /** Name of the program, in messages and profiles. */
  readonly name: string;
  readonly step: (inputs: TrainInputs) => Tree<Tensor>;
  /** Runs the step by the parts of the variables that ranks hold. */
  readonly inParts?:
    | ((asked: Omit<AskedPass, 'isAverage'>, batch: Batch) => Promise<Tree<HostTensor>>)
    | undefined;
  /** Batches that are expected in all. */
  readonly runs?: number | undefined;
}

/** The pass over batches of one shape. */
class ForwardCall {
  private constructor(
    private readonly parts: ForwardParts,
    private readonly buffers: BatchBuffers,
    /** Two words, that of the batch. */
    private readonly key: Int32Array,
    private readonly call: Pick<BoundCall, 'problemOf' | 'run'>,
    private readonly executable?: Executable,
  ) {}

  static async create(parts: ForwardParts, buffers: BatchBuffers): Promise<ForwardCall> {
    const { options, params, name, step, runs } = parts;
    const key = new Int32Array(2);
    const prngKey = { shape: [2], dtype: 'int32', data: key } satisfies HostTensor;
    if (options.debug === 'eager') {
      const run = () => runEagerly(step, { params: hostParams(params), batch: buffers.batchAt(0), prngKey });
      return new ForwardCall(parts, buffers, key, { problemOf: () => undefined, run });
    }
    const { inParts } = parts;
    if (inParts !== undefined) {
      const { inputName, specs } = buffers;
      const run = () => inParts({ inputName, specs, key: [...key] }, buffers.batchAt(0) as Batch);
      return new ForwardCall(parts, buffers, key, { problemOf: () => undefined, run });
    }
    const specs = {
      ...{ params: layoutSpecs(params.layout), batch: buffers.specs },
      prngKey: { shape: [2], dtype: 'int32' } satisfies TensorSpec,
    };
    const executable = await timed(options, 'compile', () =>
      slowUnit(options, `compilation of ${name}`, () =>
        compile(step, specs, { ...compileOptions(options, name, runs), frozen: ['params'] }),
      ),
    );
    const call = executable.bind({
      inputs: { params: params.views, batch: buffers.arrays, prngKey: key },
    });
    return new ForwardCall(parts, buffers, key, call, executable);
  }

  refresh(): void {
    this.executable?.refresh();
  }

  /**
   * The outputs for a batch, which the next call overwrites.
   *
   * @param key of the numbers that the model draws.
   * @throws JobError for an index out of range, and for an id that the model reserves.
   */
  async run(inputName: string, batch: Batch, key: PrngKey): Promise<Tree<HostTensor>> {
    this.buffers.load(batch);
    this.key.set(key);
    const { options, task } = this.parts;
    const [what, problem] = [`Input '${inputName}'`, this.call.problemOf(0)];
    if (problem !== undefined) throw badIndexError(what, problem, task.model, this.buffers.batchAt(0));
    const reserved = reservedId(task.model, batch);
    if (reserved !== undefined) throw reserved.error(what);
    const outputs = await this.call.run();
    options.progress?.finished();
    return outputs;
  }

  /** The first value of the last run that is not finite, in words. */
  async firstNonFinite(): Promise<string> {
    const { params, step } = this.parts;
    const prngKey: HostTensor = { shape: [2], dtype: 'int32', data: this.key };
    const inputs = { params: hostParams(params), batch: this.buffers.batchAt(0), prngKey };
    return describeNonFinite(await firstNonFinite(step, inputs));
  }
}

/** Passes by batch shapes; data with equal shapes share one. */
export class ForwardCalls {
  readonly #calls = new Map<string, Promise<ForwardCall>>();

  constructor(private readonly parts: ForwardParts) {}

  /** Must be called after the parameters have changed. */
  refresh(): void {
    // A pass that is still being compiled has no results of earlier ones; its failure is told to the batch that waits.
    for (const call of this.#calls.values())
      call.then(
        (compiled) => compiled.refresh(),
        () => {},
      );
  }

  /** The pass for batches like this one. */
  of(inputName: string, batch: Batch): Promise<ForwardCall> {
    const signature = JSON.stringify(specsOf(batch));
    let call = this.#calls.get(signature);
    if (!call) {
      call = ForwardCall.create(this.parts, new BatchBuffers(inputName, batch));
      this.#calls.set(signature, call);
      // A failed compilation is retried with the next batch.
      call.catch(() => this.#calls.delete(signature));
    }
    return call;
  }
}
