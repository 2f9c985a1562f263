/**
 * @file Evaluation steps of ranks that hold parts of the variables: rank 0 hands out a batch, each rank computes its part of the pass,
 * and all get the outputs.
 */
import {
  type BoundCall,
  compileProgram,
  type HostArray,
  type HostTensor,
  type IndexError,
  layoutSpecs,
  newHostArray,
  partitionProgram,
  type Sharding,
  sizeOf,
  type TensorSpec,
  type Tree,
  traceProgram,
} from '../../compiler/index.js';
import { arraysOf, type Batch, mapBatch, mapSpecs } from '../../inputs/index.js';
import { splitActivations } from '../../layers/index.js';
import { compileOptions, JobError, type JobOptions } from '../../runs/index.js';
import { evalStep, type SingleTask } from '../../tasks/index.js';
import { badIndexError } from '../batchBuffers.js';
import { type AskedPass, averaged, type ForwardInParts, type StateInParts } from '../taskState.js';
import { agree, announce, hear, tell } from './agreement.js';
import { optionsOfRanks } from './rankStep.js';

/** A compiled pass with its memory. */
interface BoundPass {
  readonly call: BoundCall;
  /** The whole batch, of which the call reads this rank's rows. */
  readonly batch: Batch;
  /** The row that is the first of this rank's. */
  readonly first: number;
  readonly key: Int32Array;
}

export class SplitForward implements ForwardInParts {
  readonly #passes = new Map<string, BoundPass>();

  constructor(
    private readonly options: JobOptions,
    private readonly task: SingleTask,
    private readonly split: StateInParts,
  ) {}

  /**
   * On rank 0: the outputs for a batch, which the next call overwrites.
   *
   * @throws JobError for an index out of range; RankFailure where another rank cannot compute its part.
   */
  async run(asked: AskedPass, batch: Batch): Promise<Tree<HostTensor>> {
    const { ranks } = this.options;
    await announce(ranks!, 'evaluate');
    await tell(ranks!, asked);
    return this.#run(asked, batch);
  }

  /** Takes part on another rank. */
  async follow(): Promise<void> {
    const asked = await hear<AskedPass>(this.options.ranks!);
    try {
      await this.#run(asked);
    } catch (error) {
      // Rank 0 has it, too, and decides.
      if (!(error instanceof JobError)) throw error;
    }
  }

  async #run(asked: AskedPass, given?: Batch): Promise<Tree<HostTensor>> {
    const ranks = this.options.ranks!;
    const { key, inputName, ...pass } = asked;
    const signature = JSON.stringify(pass);
    let bound = this.#passes.get(signature);
    if (bound === undefined) {
      bound = await agree(ranks, () => this.#bind(asked));
      this.#passes.set(signature, bound);
    }
    const { call, batch, first } = bound;
    const of = new Map(given && arraysOf(given));
    for (const [path, { data }] of arraysOf(batch)) {
      if (given !== undefined) data.set(of.get(path)!.data as never);
      await ranks.broadcast(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
    }
    bound.key.set(key);
    await agree(ranks, async () => {
      const problem = call.problemOf(0);
      if (problem === undefined) return;
      const [row, ...rest] = problem.at;
      const at = row === undefined ? [] : [first + row, ...rest];
      const found = Object.assign(Object.create(problem) as IndexError, { at });
      throw badIndexError(`Input '${inputName}'`, found, this.task.model, batch);
    });
    return call.run();
  }

  async #bind({ specs, isAverage }: AskedPass): Promise<BoundPass> {
    const { ranks, mesh, engine = 'auto' } = this.options;
    const options = await optionsOfRanks(this.options, ranks!);
    const { parts } = this.split;
    const [key, rowAxes] = [new Int32Array(2), mesh!.groupOf(mesh!.hp.inputsSplitMapping).axes];
    const { index, count } = mesh!.shareOf(ranks!.rank);
    const batch = mapSpecs(specs, ({ shape, dtype }) => ({
      ...{ shape, dtype, data: newHostArray(dtype, sizeOf(shape)) },
    })) as unknown as Batch;
    const [rows = 0, ...others] = [...arraysOf(batch)].map(([, { shape }]) => shape[0] ?? 0);
    const isSplit = rows % count === 0 && others.every((each) => each === rows);
    const shardings = new Map(mesh!.shards(this.task.variables, 0).map(({ path, axes }) => [path, axes]));
    const inputs = (path: string, { shape }: TensorSpec): Sharding | undefined => {
      if (path.startsWith('params.')) return shardings.get(path.slice('params.'.length));
      return path.startsWith('batch.') && isSplit
        ? shape.map((_, dim) => (dim === 0 ? rowAxes : []))
        : undefined;
    };
    const step = evalStep(this.task);
    const traced = traceProgram(
      (given) =>
        splitActivations(
          (...tensor) => mesh!.activationAxes(...tensor, true),
          () => step(given),
        ),
      {
        ...{ params: layoutSpecs(this.task.layout()), batch: specs },
        prngKey: { shape: [2], dtype: 'int32' },
      } as unknown as Record<string, Tree<TensorSpec>>,
    );
    const { axisNames, sizes } = mesh!;
    const executable = await compileProgram(
      partitionProgram(traced, { inputs, outputs: () => undefined, axisNames }, sizes, 'eval_step'),
      { ...compileOptions(options, 'eval_step'), engine: engine as 'auto', ranks: ranks!.steps },
    );
    const own = mapBatch(batch, ({ data }): HostArray => {
      const size = data.length / count;
      return isSplit ? (data.subarray(index * size, (index + 1) * size) as HostArray) : data;
    });
    const params = isAverage ? averaged(parts).views : parts.views;
    const call = executable.bind({ inputs: { params, batch: own as never, prngKey: key } });
    return { call, batch, first: isSplit ? (index * rows) / count : 0, key };
  }
}
