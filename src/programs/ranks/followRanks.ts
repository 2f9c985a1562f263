/** @file A rank other than 0: takes the steps that rank 0 announces. Rank 0 writes every file and runs every other program. */
import { build } from '../../hparams/index.js';
import type { InputSource, InputState } from '../../inputs/index.js';
import {
  type EngineOptions,
  JobError,
  type JobOptions,
  type JobRanks,
  strayFailures,
} from '../../runs/index.js';
import { warn } from '../../system/index.js';
import { recordsIn } from '../dataRecord.js';
import { ProgramDataset, TRAIN, trainingDataset } from '../programDataset.js';
import { setPosition } from '../startingCheckpoint.js';
import {
  outlineOf,
  type StateInParts,
  type StateSource,
  type TrainMemory,
  trainStateOf,
} from '../taskState.js';
import { TrainProgram } from '../trainProgram.js';
import { HangError, Watchdog } from '../watchdog/watchdog.js';
import { agree, hear, nextTurn, tell } from './agreement.js';
import { collectiveRecord, nameOfRank } from './collectiveRecord.js';
import { SplitForward } from './splitForward.js';
import { SplitState } from './splitState.js';
import { gatherRows } from './wholeBatch.js';

/** Where training begins. */
interface Start {
  readonly step: number;
  readonly inputState: InputState;
  /** Of the data. */
  readonly digest: string;
  /** Of the state, where ranks hold it in parts. */
  readonly source?: StateSource | undefined;
}

/** A checkpoint to read before training begins. */
interface Reading {
  readonly directory: string;
}

/** Tells the other ranks where training begins, once rank 0 has opened the data. */
export async function tellStart(
  ranks: JobRanks,
  dataset: ProgramDataset,
  input: InputSource,
  { step, split }: TrainMemory,
): Promise<void> {
  const start: Start = { step, inputState: input.getState(), digest: dataset.digest, source: split?.source };
  await tell(ranks, start);
  await agree(ranks, async () => {});
}

/** Gives all ranks rank 0's parameters and slots, or each its parts of them. */
export async function shareState(
  options: EngineOptions,
  ranks: JobRanks,
  { params, slots, split }: TrainMemory,
): Promise<void> {
  if (split !== undefined) return split.fill(options);
  for (const { buffer, byteOffset, byteLength } of [params, ...Object.values(slots)])
    await ranks.broadcast(new Uint8Array(buffer, byteOffset, byteLength));
}

/** Takes steps until rank 0 ends training. @throws the error of this rank, once rank 0 has saved */
export async function followRanks(options: JobOptions, ranks: JobRanks): Promise<void> {
  const held: { split?: StateInParts } = {};
  try {
    await follow(options, ranks, held);
  } catch (error) {
    // It cannot take part in anything.
    if (error instanceof HangError) throw error;
    (await collectiveRecord(options.jobLogDir, ranks))();
    // Its end would have the launcher kill rank 0.
    warn(`${nameOfRank(ranks)}: ${(error as Error).message}`);
    for (let turn = await nextTurn(ranks); turn !== 'end'; turn = await nextTurn(ranks))
      if (turn === 'peek') await agree(ranks, () => Promise.reject(error)).catch(() => {});
      else if (turn !== 'step') await held.split?.take(turn);
    throw error;
  } finally {
    await held.split?.checkpoints.close();
  }
}

/** @param held gets the parts of the state that this rank holds, which rank 0 may ask for to the end */
async function follow(
  options: JobOptions,
  ranks: JobRanks,
  held: { split?: StateInParts | undefined },
): Promise<void> {
  const task = build(options.task);
  const start = await untilStart(ranks, async () => (held.split ??= await SplitState.of(options, task)));
  const { split } = held;
  if (split !== undefined) {
    split.source = start.source!;
    split.forward = new SplitForward(options, task, split);
  }
  const records = { ...recordsIn(options.jobLogDir), write: () => {} };
  const dataset = new ProgramDataset(options, task, trainingDataset(options), TRAIN, records);
  try {
    const input = await agree(ranks, async () => opened(dataset, start));
    const state = split === undefined ? trainStateOf(task) : { ...outlineOf(task), split };
    state.step = start.step;
    const strays = strayFailures();
    const watchdog = new Watchdog();
    const program = await agree(ranks, () =>
      TrainProgram.create({ ...options, progress: watchdog }, task, state, input, (read) =>
        strays.during(read),
      ),
    );
    await shareState(options, ranks, state);
    const { stallSteps: steps, stallSeconds: seconds } = task.hp.train.hp;
    if (steps !== null)
      watchdog.watch({
        ...{ jobLogDir: options.jobLogDir, ranks, strays },
        ...{ limits: { steps, seconds }, step: () => program.state.step },
      });
    try {
      await Promise.race([takeTurns({ options, input, watchdog, program, split }), watchdog.hung]);
    } finally {
      await watchdog.close();
    }
  } finally {
    await dataset.close();
  }
}

/** Limits of the watchdog while rank 0 works alone, which has a watchdog of its own. */
const PATIENCE = 1e6;

/** Parts of a rank that takes turns. */
interface Following {
  readonly options: JobOptions;
  readonly input: InputSource;
  readonly watchdog: Watchdog;
  readonly program: TrainProgram;
  readonly split: StateInParts | undefined;
}

async function takeTurns({ options, input, watchdog, program, split }: Following): Promise<void> {
  const next = () => watchdog.during('waiting for rank 0', () => nextTurn(options.ranks!), PATIENCE);
  for (let turn = await next(); turn !== 'end'; turn = await next())
    if (turn === 'step') await program.run();
    else if (turn === 'peek') await gatherRows(options, input);
    else await split?.take(turn);
}

/** Reads checkpoints with rank 0, until it has one to go on from, or begins. */
async function untilStart(ranks: JobRanks, open: () => Promise<StateInParts | undefined>): Promise<Start> {
  for (;;) {
    const told = await hear<Start | Reading>(ranks);
    // Rank 0 has its state by now: what is refused, it has told.
    const split = await open();
    if (!('directory' in told)) return told;
    // Rank 0 has the error, too, and decides.
    await split?.checkpoints.read(told.directory).catch(() => {});
  }
}

function opened(dataset: ProgramDataset, { inputState, digest }: Start): InputSource {
  const input = dataset.open();
  if (dataset.digest !== digest)
    throw new JobError(
      `Input '${input.name}' reads other data here than on rank 0. Give all ranks the same files.`,
    );
  setPosition(dataset, inputState);
  return input;
}
