/** @file Watch over a project's code, which may end the process, or block it, where it should return. */
import { writeSync } from 'node:fs';
import { Worker } from 'node:worker_threads';

const MODULE = new URL('./foreignCodeWorker.js', import.meta.url);
/** Seconds that loading or configuring an experiment may take. */
const LIMIT = 120;
/** Exit codes from here on are signals, which whoever sent them knows of. */
const SIGNALS = 128;

/** A project's code at work. */
interface ForeignWork {
  /** The experiment. */
  readonly name: string;
  /** Past participle, such as `loaded`. */
  readonly done: string;
}

/** Bytes of a message to the thread. */
const TEXT_BYTES = 1024;

/** Memory that the thread shares: words whose first rises by one when work begins or ends, and a text. */
export interface Watched {
  readonly words: Int32Array<SharedArrayBuffer>;
  readonly text: Uint8Array<SharedArrayBuffer>;
  readonly milliseconds: number;
}

/** The watch over one process. */
class Watch {
  readonly #atWork: ForeignWork[] = [];
  #watched: Watched | undefined;

  constructor(private readonly seconds: number) {}

  enter(work: ForeignWork): () => void {
    this.#atWork.push(work);
    this.#tell();
    return () => {
      this.#atWork.splice(this.#atWork.indexOf(work), 1);
      this.#tell();
    };
  }

  /** Says why the process ends before its command has. @param isIdle whether it does since nothing is left to do */
  explain(code: number, isIdle: boolean): void {
    const work = this.#atWork.at(-1);
    const happened = isIdle
      ? 'waits for a promise that nothing settles, such as a top-level await'
      : `ended the process with exit code ${code}`;
    const where =
      work === undefined ? "An experiment's code" : `${work.name}: code that runs while it is ${work.done}`;
    // The streams of the process are no longer flushed.
    writeSync(2, `${where} ${happened}. It returns or throws instead.\n`);
  }

  /** Whether a process that ends with this code was ended by a project's code. */
  isForeign(code: number): boolean {
    return code === 0 || (code < SIGNALS && this.#atWork.length > 0);
  }

  /** A thread, since a loop that blocks this one lets nothing here run. */
  #tell(): void {
    const { words, text } = (this.#watched ??= this.#start());
    const work = this.#atWork.at(-1);
    if (work !== undefined) {
      const line = `${work.name}: it was not ${work.done} within ${this.seconds} s: its code may loop without an end.\n`;
      const { written } = new TextEncoder().encodeInto(line, text);
      Atomics.store(words, 1, written);
    }
    // Odd while a project's code is at work.
    const now = Atomics.load(words, 0);
    Atomics.store(words, 0, now + ((now % 2 === 1) === (work !== undefined) ? 2 : 1));
    Atomics.notify(words, 0);
  }

  #start(): Watched {
    const watched = {
      words: new Int32Array(new SharedArrayBuffer(8)),
      text: new Uint8Array(new SharedArrayBuffer(TEXT_BYTES)),
      milliseconds: 1000 * this.seconds,
    };
    new Worker(MODULE, { name: 'watch', workerData: watched, execArgv: [] }).unref();
    return watched;
  }
}

let watch: Watch | undefined;

/**
 * Watches this process: a command that a project's code ends, or blocks for longer than the limit, is an error that names
 * the experiment, and an exit code above 0.
 *
 * @returns a function for the command's end, after which the process may exit
 */
export function watchForeignCode(seconds = LIMIT): () => void {
  const begun = new Watch(seconds);
  watch = begun;
  let isIdle = false;
  const idle = () => {
    isIdle = true;
  };
  const ended = (code: number) => {
    if (!begun.isForeign(code)) return;
    begun.explain(code, isIdle);
    process.exitCode = code || 1;
  };
  process.on('beforeExit', idle).on('exit', ended);
  return () => process.off('beforeExit', idle).off('exit', ended);
}

/** Says that a project's code begins. Only commands are watched. @returns a function for its end */
export const enterForeignCode = (name: string, done: string): (() => void) =>
  watch?.enter({ name, done }) ?? (() => {});
