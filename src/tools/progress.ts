/** @file How far a command is, on a line of the terminal that is gone when it ends. */

/** Counts things that are done; silent where stderr is no terminal. */
export class Progress {
  private done = 0;

  constructor(private readonly total: number) {}

  /** One more is done, by this name. */
  add(name: string): void {
    this.done += 1;
    this.write(`${this.done} of ${this.total}: ${name}`);
  }

  /** Clears the line. */
  end(): void {
    this.write('');
  }

  private write(text: string): void {
    const { stderr } = process;
    if (stderr.isTTY === true) stderr.write(`\r${text.slice(0, (stderr.columns || 80) - 1)}\x1b[K`);
  }
}
