/** @file The prefetch thread: builds an input from its config and reads it ahead. */

import { workerData } from 'node:worker_threads';
import { build, type Config } from '../../hparams/index.js';
import type { BaseInput } from '../baseInput.js';
import { type Batch, batchBytes } from '../batch.js';
import { untilEnd } from '../inputSource.js';
import { SlotWriter } from './batchSlots.js';
import { configInThread } from './configInThread.js';
import {
  Mailbox,
  type PrefetchCommand,
  type PrefetchMessage,
  type PrefetchWorkerData,
  type StartCommand,
} from './prefetchProtocol.js';

const { document, modules, port } = workerData as PrefetchWorkerData;
const commands = new Mailbox<PrefetchCommand>(port);
const post = (message: PrefetchMessage): void => port.postMessage(message);

/** Memory for small batches, of which more may queue, since programs take several at once. */
const AHEAD_BYTES = 4 << 20;

async function nextCommand(): Promise<PrefetchCommand> {
  for (;;) {
    const command = commands.take();
    if (command) return command;
    await commands.wait();
  }
}

async function nextStart(): Promise<StartCommand> {
  for (;;) {
    const command = await nextCommand();
    if (command.kind === 'start') return command;
  }
}

/** Queue length for batches of this size. */
function depthOf({ prefetch }: BaseInput, batch: Batch): number {
  if (typeof prefetch === 'object') return prefetch.batches;
  return Math.max(2, Math.min(16, Math.floor(AHEAD_BYTES / batchBytes(batch))));
}

/** Reads ahead until another start command, which it returns; pauses at the input's end and while the queue is full. */
async function readAhead(input: BaseInput, start: StartCommand): Promise<StartCommand> {
  const { generation, state, first, stride } = start;
  input.setState(state);
  await input.skip(first);
  const slots = new SlotWriter();
  let depth = 1;
  for (let waiting = 0; ; ) {
    const command = waiting < depth ? commands.take() : await nextCommand();
    if (command?.kind === 'start') return command;
    if (command?.kind === 'taken') {
      waiting--;
      if (command.slot !== undefined) slots.release(command.slot);
    } else {
      const batch = await untilEnd(() => input.getNext());
      const written = batch === undefined ? null : slots.write(batch);
      const item = { batch: written, state: input.getState(), skipped: input.skipped.take() };
      post({ kind: 'item', generation, item });
      if (batch === undefined) return nextStart();
      await input.skip(stride - 1);
      depth = depthOf(input, batch);
      waiting++;
    }
  }
}

async function main(): Promise<void> {
  try {
    const config = (await configInThread(document, modules)) as Config<BaseInput>;
    post({ kind: 'loaded' });
    const input = build(config);
    // Reads the data, so that errors surface before the main thread hands over.
    input.getState();
    post({ kind: 'ready' });
    for (let start = await nextStart(); ; ) start = await readAhead(input, start);
  } catch (error) {
    post({ kind: 'error', error: error as Error });
  }
}

void main();
