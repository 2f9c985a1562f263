/** @file Turns of tasks. */

/** Tasks that share something: each begins when the one before has ended, however it ended. */
export class Turns {
  private last: Promise<unknown> = Promise.resolve();

  /** Runs `task` once all earlier tasks have ended. */
  take<T>(task: () => Promise<T>): Promise<T> {
    const turn = this.last.then(task);
    this.last = turn.catch(() => {});
    return turn;
  }

  /** Resolves once all tasks so far have ended. */
  async ended(): Promise<void> {
    await this.last;
  }
}
