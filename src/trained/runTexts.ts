/** @file Texts of a trained run: prompts and sources become completions, which wait in the queue of its decoder. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Constraints, GREEDY } from '../decoding/index.js';
import { type BaseTokenizer, InputError } from '../inputs/index.js';
import { Turns } from '../system/index.js';
import { Completion, ofRequest } from './completion.js';
import {
  type GenerateOptions,
  type Generation,
  generationDefaults,
  generationOf,
  rowSettingsIn,
} from './generation.js';
import { RequestError } from './requestError.js';
import {
  type Continuing,
  continuing,
  type TextParts,
  type Translating,
  translating,
} from './textDecoders.js';

/** Prompts of up to this many bytes are encoded in this thread: that takes less time than a message to another. */
const SHORT_PROMPT = 2048;
/** Bytes of a prompt for each token that there is room for, where the tokenizer sets no limit of its own. */
const MOST_TOKEN_BYTES = 1024;

/** The texts of one run; its decoders are made for the first of them. */
export class RunTexts {
  #continuing: Continuing | undefined;
  #translating: Translating | null | undefined;
  /** Requests whose constraints are compiled, and milliseconds that the last one took. */
  readonly #constraining = new Turns();
  #pause = 0;

  constructor(private readonly parts: TextParts) {}

  /** The tokenizer of training. @throws RequestError where its input has none */
  get tokenizer(): BaseTokenizer {
    return this.#continues().tokenizer;
  }

  /** Whether the model is an encoder-decoder whose input makes sources of texts. */
  get translates(): boolean {
    return this.#translates() !== null;
  }

  /** What decodes: the room, the queue and the template of chats. @throws RequestError where the model has no texts */
  get decoding(): Continuing | Translating {
    return this.#translates() ?? this.#continues();
  }

  /** What ids of the model's outputs are read by. */
  get reader(): Pick<BaseTokenizer, 'decode' | 'tokenBytes'> {
    return this.#translates()?.texts ?? this.tokenizer;
  }

  /** As `TrainedRun.encode`. */
  async encode(text: string): Promise<Int32Array> {
    this.#checkBytes(text);
    const isShort = Buffer.byteLength(text) <= SHORT_PROMPT;
    return this.#started(isShort ? this.tokenizer.encode(text) : await this.#encodeAside(text));
  }

  /** As `TrainedRun.stream`. */
  stream(prompt: string, options: GenerateOptions): Completion {
    const settings = this.#settings(options);
    const translating = this.#translates();
    if (translating) return this.#translation(translating, prompt, settings);
    this.#checkBytes(prompt);
    return this.#completion(this.tokenizer.encode(prompt), settings);
  }

  /** As `TrainedRun.begin`. */
  begin(prompt: string | readonly number[], options: GenerateOptions): Promise<Completion> {
    return this.#begin(prompt, this.#settings(options));
  }

  /** As `TrainedRun.beginAll`. */
  async beginAll(
    prompts: readonly (string | readonly number[])[],
    options: GenerateOptions,
    seedOf: (index: number) => number,
  ): Promise<Completion[]> {
    const isConstrained = (options.constraint ?? undefined) !== undefined;
    const settings = isConstrained
      ? await this.#constraining.take(() => this.#constrained(options))
      : this.#settings(options);
    return Promise.all(prompts.map((prompt, i) => this.#begin(prompt, { ...settings, seed: seedOf(i) })));
  }

  /** Checks settings, and compiles their constraint: a large one takes a tenth of a second, as long as which others go on before it. */
  async #constrained(options: GenerateOptions): Promise<Generation['hp']> {
    await sleep(this.#pause);
    const begun = performance.now();
    try {
      const settings = this.#settings(options);
      this.#drawing(settings, this.decoding.constraints);
      return settings;
    } finally {
      this.#pause = performance.now() - begun;
    }
  }

  async #begin(prompt: string | readonly number[], settings: Generation['hp']): Promise<Completion> {
    const translating = this.#translates();
    if (typeof prompt !== 'string') {
      if (translating) throw new RequestError(`${this.parts.document.name} reads texts, and no token ids.`);
      return this.#completion(Int32Array.from(prompt), settings, false);
    }
    if (translating) return this.#translation(translating, prompt, settings, false);
    this.#checkBytes(prompt);
    if (Buffer.byteLength(prompt) <= SHORT_PROMPT)
      return this.#completion(this.tokenizer.encode(prompt), settings);
    return this.#completion(await this.#encodeAside(prompt), settings);
  }

  /** Ends requests in progress, and frees the compiled programs. */
  async dispose(): Promise<void> {
    for (const made of [this.#continuing, this.#translating]) await made?.chat.close();
    await this.#continuing?.encoder.close();
    for (const made of [this.#continuing, this.#translating]) await made?.queue.dispose();
  }

  /** @throws RequestError for rules of drawing where the decoder has its own */
  #settings(options: GenerateOptions): Generation['hp'] {
    const { decoder } = this.parts.task.hp.decode.hp;
    const rules = rowSettingsIn(options);
    if (decoder.rule === null && rules.length > 0)
      throw new RequestError(
        `${rules.join(', ')}: ${this.parts.document.name} decodes with a ${decoder.constructor.name}, which draws by its own rule. ` +
          'Leave out such settings, or set task.decode.decoder.',
        { setting: rules[0]! },
      );
    if (!decoder.drawsByRow && (options.constraint ?? undefined) !== undefined)
      throw new RequestError(
        `constraint: ${this.parts.document.name} decodes with a ${decoder.constructor.name}, whose constraint is set by task.decode.decoder.constraint.`,
        { setting: 'constraint' },
      );
    return generationOf(generationDefaults(this.parts.task.hp.decode), options);
  }

  /** @throws RequestError for a prompt of more bytes than all tokens together can decode to, before it is encoded */
  #checkBytes(prompt: string): void {
    const { tokenizer, seqlen } = this.#continues();
    const bytes = Buffer.byteLength(prompt);
    const most = (seqlen - 1) * Math.min(tokenizer.maxTokenBytes, MOST_TOKEN_BYTES);
    // A short one is encoded, for its number of tokens.
    if (bytes <= Math.max(SHORT_PROMPT, most)) return;
    throw new RequestError(
      `The prompt has ${bytes} bytes; prompt and continuation together have ${seqlen} tokens at most, so expected ${most} bytes or fewer.`,
    );
  }

  async #encodeAside(prompt: string): Promise<Int32Array> {
    const { tokenizer, encoder } = this.#continues();
    try {
      return await encoder.encode(prompt);
    } catch (error) {
      if (error instanceof InputError) throw error;
      // A thread may lack classes that this one has.
      return tokenizer.encode(prompt);
    }
  }

  #translation(
    { texts, queue, constraints }: Translating,
    source: string,
    settings: Generation['hp'],
    readsFiles = true,
  ): Completion {
    const arrays = texts.sourceOf(source, readsFiles);
    // The queue tells the reader.
    arrays.catch(() => {});
    const drawing = this.#drawing(settings, constraints);
    const model = { ...drawing, decoder: texts.decoder(), enqueue: queue.add };
    return new Completion(Int32Array.from(texts.start), settings, model, arrays);
  }

  /** Ids with the tokens before prompts. */
  #started(encoded: Int32Array): Int32Array {
    const start = this.tokenizer.promptStart;
    // A prompt may have it in its text.
    const isStarted = start.every((id, i) => encoded[i] === id);
    return isStarted ? encoded : Int32Array.of(...start, ...encoded);
  }

  #completion(encoded: Int32Array, settings: Generation['hp'], isText = true): Completion {
    const { tokenizer, queue, constraints, seqlen } = this.#continues();
    const ids = isText ? this.#started(encoded) : encoded;
    if (ids.length === 0) {
      throw new RequestError(
        'The prompt is empty: the model continues text, and needs a token to begin with.',
      );
    }
    if (ids.length >= seqlen) {
      throw new RequestError(
        `The prompt has ${ids.length} tokens; prompt and continuation together have ${seqlen} at most, so expected ${seqlen - 1} or fewer.`,
      );
    }
    return new Completion(ids, settings, {
      ...this.#drawing(settings, constraints),
      decoder: tokenizer.decoder(ids),
      enqueue: queue.add,
    });
  }

  /** @throws RequestError for a constraint that cannot be compiled */
  #drawing({ constraint }: Generation['hp'], constraints: Constraints) {
    const { rule, eosIds: endIds, hp, drawsByRow } = this.parts.task.hp.decode.hp.decoder;
    // A decoder of whole continuations holds to its constraint itself.
    const compiled = constraint && drawsByRow ? ofRequest(() => constraints.compile(constraint)) : undefined;
    return { rule: rule ?? GREEDY, endIds, minTokens: hp.minDecodeSteps, constraint: compiled };
  }

  #continues(): Continuing {
    this.#continuing ??= continuing(this.parts);
    return this.#continuing;
  }

  /** Of an encoder-decoder whose input makes sources of texts; null for other models. */
  #translates(): Translating | null {
    if (this.#translating === undefined) this.#translating = translating(this.parts);
    return this.#translating;
  }
}
