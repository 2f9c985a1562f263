/** @file A warm process for the trials of a study. */
import { extname } from 'node:path';
import { Child, ChildError, type StopSignalName } from '../system/index.js';

/** The end of a trial's process, or of its run in it. */
export interface TrialEnd {
  /** Undefined where the process has ended. */
  readonly exit?: number;
  readonly error?: { readonly name: string; readonly message: string };
}

type Message = { readonly flags: readonly string[] } | { readonly stop: StopSignalName };

const worker = new URL(`../tools/trialWorker${extname(import.meta.url)}`, import.meta.url);

/** Runs trials, one after the other, in a process that a failure or a kill replaces. */
export class TrialProcess {
  #child: Child<Message, TrialEnd> | undefined;

  /** Runs `luthier` with flags. */
  async run(flags: readonly string[]): Promise<TrialEnd> {
    const child = (this.#child ??= new Child(worker, { isBeneath: true }));
    child.send({ flags });
    try {
      return await child.receive();
    } catch (error) {
      if (!(error instanceof ChildError)) throw error;
      this.#child = undefined;
      const last = error.output.trimEnd().split('\n').at(-1);
      return { error: { name: error.name, message: `${error.message}${last ? ` ${last}` : ''}` } };
    }
  }

  /** Has the run save and end. */
  stop(signal: StopSignalName): void {
    this.#child?.send({ stop: signal });
  }

  /** Ends the process at once. */
  async end(): Promise<void> {
    await this.#child?.kill();
  }
}
