/** @file Compiled programs by key: a bounded number, of which the one that was not used for longest goes first. */
import { CompilerError } from '../program/tensors.js';

/** A program that is kept. */
interface Disposable {
  dispose(): Promise<void>;
}

/** Programs that are kept. Calls must take turns. */
export class KeptPrograms<P extends Disposable> {
  /** The newest stands last. */
  private readonly programs = new Map<string, P>();

  /**
   * @param user names the function in messages. @param most programs that are kept.
   * @throws CompilerError unless `most` is a positive integer.
   */
  constructor(
    user: string,
    private readonly most: number,
  ) {
    if (!(Number.isInteger(most) && most > 0))
      throw new CompilerError(`${user}: expected maxPrograms to be a positive integer, got ${most}.`);
  }

  /** Number of programs that are kept. */
  get size(): number {
    return this.programs.size;
  }

  /** The program of a key, made where there is none, or none that is current. */
  async get(
    key: string,
    make: () => Promise<P>,
    isCurrent: (program: P) => boolean = () => true,
  ): Promise<P> {
    let program = this.programs.get(key);
    this.programs.delete(key);
    if (program !== undefined && !isCurrent(program)) {
      await program.dispose();
      program = undefined;
    }
    program ??= await make();
    this.programs.set(key, program);
    for (const [oldest, unused] of this.programs) {
      if (this.programs.size <= this.most) break;
      await unused.dispose();
      this.programs.delete(oldest);
    }
    return program;
  }

  /** Frees all programs. */
  async dispose(): Promise<void> {
    const all = [...this.programs.values()];
    this.programs.clear();
    for (const program of all) await program.dispose();
  }
}
