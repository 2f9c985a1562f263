/** @file The encoding thread: builds a tokenizer from its config and encodes texts with it. */
import { parentPort, workerData } from 'node:worker_threads';
import { build, type Config } from '../../hparams/index.js';
import type { BaseTokenizer } from '../text/vocabularies/baseTokenizer.js';
import { configInThread } from './configInThread.js';
import type { EncoderAnswer, EncoderRequest, EncoderWorkerData } from './encoderThread.js';

const { document, modules } = workerData as EncoderWorkerData;
const building = configInThread(document, modules).then((config) => build(config as Config<BaseTokenizer>));

/** Only one text at a time is encoded: the requests of others wait in the port. */
async function answer({ number, text }: EncoderRequest): Promise<EncoderAnswer> {
  try {
    return { number, ids: (await building).encode(text) };
  } catch (error) {
    const { name, message } = error as Error;
    return { number, name, message };
  }
}

parentPort!.on('message', async (request: EncoderRequest) => parentPort!.postMessage(await answer(request)));
