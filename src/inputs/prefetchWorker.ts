/** @file The prefetch thread: builds an input from its config and reads it ahead into shared memory. */

import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { workerData } from 'node:worker_threads';
import { build, type Config, Configurable, fromJSON, registerClass } from '../hparams/index.js';
import type { BaseInput } from './baseInput.js';
import { writeBatch } from './batchLayout.js';
import { EndOfData } from './errors.js';
import * as inputs from './index.js';
import {
  Mailbox,
  type PrefetchMessage,
  type PrefetchWorkerData,
  type StartCommand,
  Word,
} from './prefetchProtocol.js';

const { document, modules, port, control } = workerData as PrefetchWorkerData;
const words = new Int32Array(control);
const commands = new Mailbox<StartCommand>(port);
const post = (message: PrefetchMessage): void => port.postMessage(message);

/** Batches put into slots so far, of all generations; with `Word.taken` it says whether a slot is free. */
let put = 0;

/** Makes the configurable classes that a module exports known by their names. */
function registerAll(namespace: object): void {
  for (const value of Object.values(namespace)) {
    if (typeof value === 'function' && value.prototype instanceof Configurable) registerClass(value);
  }
}

async function nextCommand(): Promise<StartCommand> {
  for (;;) {
    const command = commands.take();
    if (command) return command;
    await commands.wait();
  }
}

/** Reads ahead for `command` until the input ends or another command comes, which it returns. */
async function readAhead(input: BaseInput, command: StartCommand): Promise<StartCommand> {
  const { generation, layout, memory } = command;
  const depth = memory.byteLength / layout.size;
  input.setState(command.state);
  for (;;) {
    const wake = Atomics.load(words, Word.wake);
    const newer = commands.take();
    if (newer) return newer;
    if (put - Atomics.load(words, Word.taken) >= depth) {
      Atomics.wait(words, Word.wake, wake);
      continue;
    }
    try {
      const batch = await input.getNext();
      const slot = put++ % depth;
      const fits = writeBatch(batch, layout, memory, slot * layout.size);
      post({ kind: 'batch', generation, content: fits ? slot : batch, state: input.getState() });
    } catch (error) {
      if (!(error instanceof EndOfData)) throw error;
      post({ kind: 'end', generation, state: input.getState() });
      return await nextCommand();
    }
  }
}

async function main(): Promise<void> {
  let generation = 0;
  try {
    registerAll(inputs);
    // An experiment's module brings layers and kernels with it, which a thread that reads text does without.
    const isOwn = document.configs.some((config) => !Object.hasOwn(inputs, config.class));
    // `require` shares the module instances, and so the class registry, of this thread's own imports.
    const load = createRequire(import.meta.url);
    for (const url of isOwn ? modules : []) registerAll(load(fileURLToPath(url)));
    const input = build(fromJSON(document) as Config<BaseInput>);
    // Reads the data, so that what is wrong with it comes before the main thread hands over.
    input.getState();
    post({ kind: 'ready' });
    for (let command = await nextCommand(); ; ) {
      generation = command.generation;
      command = await readAhead(input, command);
    }
  } catch (error) {
    post({ kind: 'error', generation, error: error as Error });
  }
}

void main();
