/** @file Child processes that answer questions one after another, several side by side. */
import { type Child, ChildError } from './child.js';

/** A process's messages on a question: the last is the answer, unless there is an error. */
interface Reply<Message> {
  readonly messages: readonly Message[];
  readonly error?: ChildError;
}

/** Answers questions in a process; a question that ends the process gets the error, and a new process follows. */
export class Answerer<Question, Message> {
  private child: Child<Question, Message> | undefined;
  private isFresh = true;

  /**
   * @param begin starts a process, which is ready when the promise resolves.
   * @param isLast whether a message is the answer to a question, and no other one follows.
   */
  constructor(
    private readonly begin: () => Promise<Child<Question, Message>>,
    private readonly isLast: (message: Message) => boolean,
  ) {}

  /** Starts the process ahead of a question, which would start it otherwise. */
  async start(): Promise<void> {
    if (this.child !== undefined) return;
    this.isFresh = true;
    this.child = await this.begin();
  }

  /** Asks a question, to be answered within so many seconds. */
  async ask(question: Question, seconds: number): Promise<Reply<Message>> {
    for (;;) {
      const messages: Message[] = [];
      try {
        await this.start();
        this.child!.send(question);
        const deadline = performance.now() + seconds * 1000;
        do messages.push(await this.child!.receive(Math.max(1, deadline - performance.now())));
        while (!this.isLast(messages.at(-1)!));
        this.isFresh = false;
        return { messages };
      } catch (error) {
        if (!(error instanceof ChildError)) throw error;
        this.child = undefined;
        // Earlier questions may be at fault for the end of a process; a fresh one shows whether this one is.
        if (this.isFresh || error.reason === 'timeout') return { messages, error };
      }
    }
  }

  /** Ends the process. */
  async end(): Promise<void> {
    await this.child?.kill();
  }
}

/** The fewest items that are worth the start of a process. */
const fewest = 4;

/**
 * Works on all items, each part of the list by a worker of its own; a worker that is done helps with the longest part.
 * Items that stand side by side have much in common, which a process makes once.
 */
export async function inParts<T, W>(
  items: readonly T[],
  most: number,
  workerOf: (part: number) => W,
  work: (worker: W, item: T) => Promise<void>,
): Promise<void> {
  const count = Math.min(most, Math.ceil(items.length / fewest));
  const size = Math.ceil(items.length / count);
  const parts = Array.from({ length: count }, (_, i) => items.slice(i * size, (i + 1) * size));
  const next = (part: T[]): T | undefined =>
    part.shift() ?? parts.toSorted((a, b) => b.length - a.length)[0]!.pop();
  const working = parts.map(async (part, i) => {
    const worker = workerOf(i);
    for (let item = next(part); item !== undefined; item = next(part)) await work(worker, item);
  });
  await Promise.all(working);
}
