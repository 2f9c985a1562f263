/** @file Thread of the Rust library `tokenizers`, whose calls are asynchronous, for callers that wait. */
import { createRequire } from 'node:module';
import { type MessagePort, workerData } from 'node:worker_threads';
import type { Tokenizer } from 'tokenizers';

/** Data of the thread. */
export interface RustWorkerData {
  readonly port: MessagePort;
  /** Becomes 1 with each answer. */
  readonly signal: Int32Array;
}

/** A request to the thread; `handle` is the caller's name of a tokenizer. Forgetting has no answer. */
export type RustRequest = { readonly handle: number } & (
  | { readonly type: 'load'; readonly contents: string }
  | { readonly type: 'encode'; readonly text: string }
  | { readonly type: 'decode'; readonly ids: readonly number[] }
  | { readonly type: 'forget' }
);

/** An answer, or the library's message. */
export type RustAnswer = { readonly value: Int32Array | string | null } | { readonly error: string };

const { port, signal } = workerData as RustWorkerData;
const tokenizers = new Map<number, Tokenizer>();

async function answer(request: RustRequest): Promise<Int32Array | string | null> {
  if (request.type === 'load') {
    // Here its failure, on a platform that it has no build for, is an answer.
    const library = createRequire(import.meta.url)('tokenizers') as typeof import('tokenizers');
    tokenizers.set(request.handle, library.Tokenizer.fromString(request.contents));
    return null;
  }
  const tokenizer = tokenizers.get(request.handle)!;
  if (request.type === 'decode')
    return tokenizer.decode([...(request as { ids: readonly number[] }).ids], false);
  const encoding = await tokenizer.encode((request as { text: string }).text, null, {
    addSpecialTokens: false,
  });
  return Int32Array.from(encoding.getIds());
}

port.on('message', async (request: RustRequest) => {
  if (request.type === 'forget') {
    tokenizers.delete(request.handle);
    return;
  }
  let told: RustAnswer;
  try {
    told = { value: await answer(request) };
  } catch (error) {
    told = { error: (error as Error).message };
  }
  port.postMessage(told);
  Atomics.store(signal, 0, 1);
  Atomics.notify(signal, 0);
});
