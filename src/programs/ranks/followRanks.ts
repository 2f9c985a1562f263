/** @file A rank other than 0: takes the steps that rank 0 announces. Rank 0 writes every file and runs every other program. */
import { broadcastBytes } from '../../collectives/index.js';
import { build } from '../../hparams/index.js';
import type { InputSource, InputState } from '../../inputs/index.js';
import { JobError, type JobOptions, type JobRanks, strayFailures } from '../../runs/index.js';
import { warn } from '../../system/index.js';
import { recordsIn } from '../dataRecord.js';
import { ProgramDataset, TRAIN, trainingDataset } from '../programDataset.js';
import { setPosition } from '../startingCheckpoint.js';
import { type TrainMemory, trainStateOf } from '../taskState.js';
import { TrainProgram } from '../trainProgram.js';
import { agree, nextTurn } from './agreement.js';

/** Where training begins. */
interface Start {
  readonly step: number;
  readonly inputState: InputState;
  /** Of the data. */
  readonly digest: string;
}

/** Tells the other ranks where training begins, once rank 0 has opened the data. */
export async function tellStart(
  ranks: JobRanks,
  dataset: ProgramDataset,
  input: InputSource,
  { step }: TrainMemory,
): Promise<void> {
  const start: Start = { step, inputState: input.getState(), digest: dataset.digest };
  await broadcastBytes(ranks, new TextEncoder().encode(JSON.stringify(start)));
  await agree(ranks, async () => {});
}

/** Gives all ranks rank 0's parameters and slots. */
export async function shareState(ranks: JobRanks, { params, slots }: TrainMemory): Promise<void> {
  for (const { buffer, byteOffset, byteLength } of [params, ...Object.values(slots)])
    await ranks.broadcast(new Uint8Array(buffer, byteOffset, byteLength));
}

/** Takes steps until rank 0 ends training. @throws the error of this rank, once rank 0 has saved */
export async function followRanks(options: JobOptions, ranks: JobRanks): Promise<void> {
  try {
    await follow(options, ranks);
  } catch (error) {
    // Its end would have the launcher kill rank 0.
    warn(`Rank ${ranks.rank}: ${(error as Error).message}`);
    while ((await nextTurn(ranks)) !== 'end');
    throw error;
  }
}

async function follow(options: JobOptions, ranks: JobRanks): Promise<void> {
  const told = await broadcastBytes(ranks, new Uint8Array());
  const start = JSON.parse(new TextDecoder().decode(told)) as Start;
  const task = build(options.task);
  const records = { ...recordsIn(options.jobLogDir), write: () => {} };
  const dataset = new ProgramDataset(options, task, trainingDataset(options), TRAIN, records);
  try {
    const input = await agree(ranks, async () => opened(dataset, start));
    const state = trainStateOf(task);
    state.step = start.step;
    const strays = strayFailures();
    const program = await agree(ranks, () =>
      TrainProgram.create(options, task, state, input, (read) => strays.during(read)),
    );
    await shareState(ranks, state);
    while ((await nextTurn(ranks)) === 'step') await program.run();
  } finally {
    await dataset.close();
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
