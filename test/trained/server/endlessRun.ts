/** @file A run whose model draws one token, or tokens of certain texts, with a pause before each, until a completion has enough. */
import { setTimeout as sleep } from 'node:timers/promises';
import { GREEDY } from '../../../src/decoding/index.js';
import { build } from '../../../src/hparams/index.js';
import { ByteTokenizer } from '../../../src/inputs/index.js';
import { Completion } from '../../../src/trained/completion.js';
import { type GenerateOptions, generationOf } from '../../../src/trained/generation.js';
import type { TrainedRun } from '../../../src/trained/index.js';

const END = 0;
const defaults = { temperature: 0, topK: 0, topP: null, seed: 0 };

/**
 * What a server asks of a run, with completions that are real.
 *
 * @param piece the text of a token; or those of all, behind which the sequence ends
 */
export function endlessRun(pauseMs: number, piece: string | readonly string[] = 'a'): TrainedRun {
  const tokenizer = build(ByteTokenizer.config());
  const decode = async (completion: Completion): Promise<void> => {
    do await sleep(pauseMs);
    while (!completion.accept(completion.tokens === piece.length && typeof piece !== 'string' ? END : 97));
  };
  const begin = async (prompt: string, options: GenerateOptions) => {
    const pieces = typeof piece === 'string' ? undefined : [...piece];
    return new Completion(tokenizer.encode(prompt), generationOf(defaults, options), {
      decoder: { take: () => pieces?.shift() ?? (piece as string), rest: () => '' },
      rule: GREEDY,
      endIds: new Set([END]),
      enqueue: (completion) => void decode(completion),
    });
  };
  return {
    name: 'endless',
    step: 1,
    continuesText: true,
    maxTokens: 1 << 20,
    load: { rows: 1, busy: 0, waiting: 0 },
    chat: { render: async () => 'x' },
    beginAll: (prompts: readonly string[], options: GenerateOptions) =>
      Promise.all(prompts.map((prompt) => begin(prompt, options))),
  } as unknown as TrainedRun;
}
