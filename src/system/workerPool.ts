/** @file Pool of child processes that answer questions side by side, and lanes of work in general. */
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
  private hasEnded = false;

  /**
   * @param begin starts a process, which is ready when the promise resolves.
   * @param isLast whether a message is the answer to a question, and no other one follows.
   */
  constructor(
    private readonly begin: () => Promise<Child<Question, Message>>,
    private readonly isLast: (message: Message) => boolean,
  ) {}

  /** Starts the process ahead of a question, which would start it otherwise. @throws ChildError where it does not start. */
  async start(): Promise<void> {
    if (this.child !== undefined) return;
    this.isFresh = true;
    const child = this.hasEnded ? undefined : await this.begin();
    if (this.hasEnded) {
      await child?.kill();
      throw new ChildError('ended', 'The process was ended.', '');
    }
    this.child = child;
  }

  /** Asks a question, to be answered within so many seconds; `heard` gets each message as it comes. */
  async ask(
    question: Question,
    seconds = Number.POSITIVE_INFINITY,
    heard?: (message: Message) => void,
  ): Promise<Reply<Message>> {
    for (;;) {
      const messages: Message[] = [];
      try {
        await this.start();
        this.child!.send(question);
        const deadline = performance.now() + seconds * 1000;
        do {
          messages.push(await this.child!.receive(Math.max(1, deadline - performance.now())));
          heard?.(messages.at(-1)!);
        } while (!this.isLast(messages.at(-1)!));
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

  /** Ends the process; the next question starts another one. */
  async renew(): Promise<void> {
    const { child } = this;
    this.child = undefined;
    await child?.kill();
  }

  /** Ends the process for good: a question that it was answering gets the error. */
  async end(): Promise<void> {
    this.hasEnded = true;
    await this.child?.kill();
  }
}

/**
 * Works on the items of all queues, a lane each: it takes from the front of its own, and then from the end of the
 * longest. Lanes that share one queue take its items in order.
 *
 * @throws the first error of any lane, after which no further item is begun, and those at work have come to their end.
 */
export async function inLanes<T>(
  queues: readonly T[][],
  work: (item: T, lane: number) => Promise<void>,
): Promise<void> {
  const errors: unknown[] = [];
  const next = (own: T[]): T | undefined =>
    errors.length > 0 ? undefined : (own.shift() ?? queues.toSorted((a, b) => b.length - a.length)[0]!.pop());
  const lanes = queues.map(async (queue, lane) => {
    try {
      for (let item = next(queue); item !== undefined; item = next(queue)) await work(item, lane);
    } catch (error) {
      errors.push(error);
    }
  });
  await Promise.all(lanes);
  if (errors.length > 0) throw errors[0];
}

/** Workers that are made when there is work for them, and kept until the pool ends. */
export class WorkerPool<W extends { end(): Promise<void> }> {
  private readonly workers: W[] = [];

  constructor(private readonly make: () => W) {}

  /** A worker, made on first use. */
  worker(lane: number): W {
    return (this.workers[lane] ??= this.make());
  }

  /**
   * Works on all items, each part of the list by a worker of its own; one that is done helps with the longest part.
   * Items that stand side by side have much in common, which a process makes once.
   *
   * @param most workers.
   * @param fewest items that are worth the start of a worker.
   * @throws the first error of a worker, after which all workers are ended.
   */
  async each<T>(
    items: readonly T[],
    most: number,
    work: (worker: W, item: T) => Promise<void>,
    fewest = 4,
  ): Promise<void> {
    const count = Math.min(most, Math.ceil(items.length / fewest));
    const size = Math.ceil(items.length / count);
    const parts = Array.from({ length: count }, (_, i) => items.slice(i * size, (i + 1) * size));
    await inLanes(parts, async (item, lane) => {
      try {
        await work(this.worker(lane), item);
      } catch (error) {
        void this.end();
        throw error;
      }
    });
  }

  /** Ends the workers. */
  async end(): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.end()));
  }
}
