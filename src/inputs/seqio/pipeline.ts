/** @file A task's preprocessing of examples that follow one another. */
import { foldIn, type PrngKey } from '../../compiler/random/index.js';
import { placed } from '../inputErrors.js';
import { ExampleDraws } from './exampleDraws.js';
import type { Example, PreprocessContext, Preprocessor } from './preprocessor.js';

/** An example with the key of its random numbers, and its place for messages, which may take a while to find. */
export interface KeyedExample {
  readonly example: Example;
  readonly key: PrngKey;
  readonly place: () => string;
}

/** Keys of the examples that one example was split into; stages have those below. */
const PARTS = 2 ** 32;

/**
 * Runs a task's preprocessors. An example's results depend only on the group of examples that a preprocessor takes at
 * a time, so a pipeline restarted at a group gives the same results from there on.
 */
export class Pipeline {
  /** Examples that wait at each stage for others. */
  readonly #waiting: KeyedExample[][];

  constructor(
    private readonly stages: readonly Preprocessor[],
    private readonly context: Omit<PreprocessContext, 'draws'>,
    private readonly emit: (made: KeyedExample) => void,
    /** The result of `make`; undefined if these `examples` are broken and left out. */
    private readonly attempt: <T>(make: () => T, examples: number) => T | undefined = (make) => make(),
    /** Number of the first stage that runs: examples have passed those before it. */
    private readonly firstStage = 0,
  ) {
    this.#waiting = stages.map(() => []);
  }

  /** Takes an example, and passes completed results to `emit`. @throws InputError with the example's place */
  push(example: KeyedExample): void {
    this.#take(example, this.firstStage);
  }

  /** Emits incomplete groups at the end. */
  flush(): void {
    for (const s of this.stages.keys()) this.#run(s);
  }

  #take(item: KeyedExample, s: number): void {
    const stage = this.stages[s];
    if (stage === undefined) this.emit(item);
    else if (this.#waiting[s]!.push(item) >= stage.examplesAtOnce) this.#run(s);
  }

  #run(s: number): void {
    const items = this.#waiting[s]!;
    const [first] = items;
    if (first === undefined) return;
    this.#waiting[s] = [];
    const { key, place } = first;
    const examples = items.map(({ example }) => example);
    const context = { ...this.context, draws: new ExampleDraws(foldIn(key, s)) };
    const apply = () => [...this.stages[s]!.apply(examples, context)];
    const made = this.attempt(() => placed(place, apply), examples.length) ?? [];
    for (const [i, example] of made.entries())
      this.#take({ example, place, key: i === 0 ? key : foldIn(key, PARTS + i) }, s + 1);
  }
}
