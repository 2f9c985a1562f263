/** @file Thread that hands requests to the process of the Rust library `tokenizers`, for callers that wait. */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type MessagePort, workerData } from 'node:worker_threads';

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

/** An answer, or an error. */
export type RustAnswer = { readonly value: Int32Array | string | null } | { readonly error: string };

/** The program, which is no TypeScript, so that it starts fast. */
const PROGRAM = fileURLToPath(new URL('./rustProcess.cjs', import.meta.url));

/**
 * Limits of a request beyond the process at rest: a constant, and an amount for each byte of a document or a text. The
 * library itself takes about 1 µs of processor time and 150 bytes of memory for a byte of text.
 */
const BOUNDS = { microseconds: 1e6, microsecondsByByte: 20, bytes: 160 * 2 ** 20, bytesByByte: 1000 };

function boundsOf(request: RustRequest): { microseconds: number; bytes: number; size: number } {
  const size =
    request.type === 'load'
      ? Buffer.byteLength(request.contents)
      : request.type === 'encode'
        ? Buffer.byteLength(request.text)
        : request.type === 'decode'
          ? 8 * request.ids.length
          : 0;
  return {
    size,
    microseconds: BOUNDS.microseconds + size * BOUNDS.microsecondsByByte,
    bytes: BOUNDS.bytes + size * BOUNDS.bytesByByte,
  };
}

/** The reason why a process that was to answer a request is gone. */
function reasonOf(request: RustRequest, output: string, how: string): string {
  const { microseconds, bytes, size } = boundsOf(request);
  const over = (limit: string): string =>
    `the library 'tokenizers' took more than ${limit} for ${size} bytes, and was ended: a pattern of the file may backtrack, or a normalizer expand its text`;
  if (output.endsWith('over time')) return over(`${microseconds / 1e6} s of the processor`);
  if (output.endsWith('over memory')) return over(`${Math.ceil(bytes / 2 ** 20)} MiB`);
  // A panic writes its place, then its message.
  const panic = /panicked at .*\n(.*)/.exec(output)?.[1];
  return `the library 'tokenizers' ended with ${how}${panic ? `: ${panic}` : ''}`;
}

/** The library's process; it has the tokenizers that were loaded into it. */
class RustProcess {
  readonly loaded = new Set<number>();
  readonly #child: ChildProcess;
  #output = '';
  #answer: ((answer: RustAnswer | { readonly gone: string }) => void) | undefined;
  isGone = false;

  constructor() {
    const stdio = ['ignore', 'ignore', 'pipe', 'ipc'] as const;
    this.#child = fork(PROGRAM, { execArgv: [], serialization: 'advanced', stdio: [...stdio] });
    this.#child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.#output = (this.#output + text).slice(-8000);
    });
    this.#child.on('message', (answer) => this.#answer?.(answer as RustAnswer));
    this.#child.on('error', (error) => this.#end(`an error: ${error.message}`));
    this.#child.on('close', (code, signal) => this.#end(signal ?? `exit code ${code}`));
  }

  #end(how: string): void {
    this.isGone = true;
    this.#answer?.({ gone: how });
  }

  /** Sends a request, and waits for its answer. */
  async ask(request: RustRequest): Promise<RustAnswer> {
    const answer = await new Promise<RustAnswer | { readonly gone: string }>((resolve) => {
      this.#answer = resolve;
      if (this.isGone) resolve({ gone: 'nobody asking' });
      const { microseconds, bytes } = boundsOf(request);
      this.#child.send({ request, microseconds, bytes }, () => {});
    });
    this.#answer = undefined;
    if ('gone' in answer) return { error: reasonOf(request, this.#output, answer.gone) };
    if (request.type === 'load' && !('error' in answer)) this.loaded.add(request.handle);
    if (request.type === 'forget') this.loaded.delete(request.handle);
    return answer;
  }
}

const { port, signal } = workerData as RustWorkerData;
/** Documents by handle, for a process that takes the place of one that is gone. */
const documents = new Map<number, RustRequest & { type: 'load' }>();
let current: RustProcess | undefined;

async function answer(request: RustRequest): Promise<RustAnswer> {
  if (request.type === 'load') documents.set(request.handle, request);
  if (request.type === 'forget') {
    documents.delete(request.handle);
    return current?.loaded.has(request.handle) ? current.ask(request) : { value: null };
  }
  if (current === undefined || current.isGone) current = new RustProcess();
  if (!current.loaded.has(request.handle)) {
    const loading = await current.ask(documents.get(request.handle)!);
    if (request.type === 'load' || 'error' in loading) return loading;
  }
  return current.ask(request);
}

/** Requests are answered one after the other. */
let turn = Promise.resolve();
port.on('message', (request: RustRequest) => {
  turn = turn.then(async () => {
    const reply = await answer(request);
    if (request.type === 'forget') return;
    port.postMessage(reply);
    Atomics.store(signal, 0, 1);
    Atomics.notify(signal, 0);
  });
});
