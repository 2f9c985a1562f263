/** @file Schedule of a pipeline: which microbatch each stage works on in each iteration (GPipe, with circular repeats as in praxis). */

/** Sizes of a pipeline. */
export interface PipelineSizes {
  readonly numStages: number;
  readonly numMicrobatches: number;
  /** How often a microbatch passes all stages, each time by weights of their own. */
  readonly circularRepeat: number;
}

/** What a stage does in an iteration. */
export interface Turn {
  /** Whether it works; otherwise it is in the bubble, and the rest is 0. */
  readonly isValid: boolean;
  readonly microbatch: number;
  readonly repeat: number;
}

/** Iterations of a pipeline: a stage works in as many as it has microbatches and repeats, and waits in as many as there are other stages. */
export const iterationsOf = ({ numStages, numMicrobatches, circularRepeat }: PipelineSizes): number =>
  numMicrobatches * circularRepeat + numStages - 1;

/** The turns of each iteration, by stage: stage s works on the t-th passage in iteration s + t. */
export function turnsOf(sizes: PipelineSizes): Turn[][] {
  const { numStages, numMicrobatches, circularRepeat } = sizes;
  return Array.from({ length: iterationsOf(sizes) }, (_, iteration) =>
    Array.from({ length: numStages }, (_, stage): Turn => {
      const passage = iteration - stage;
      const isValid = passage >= 0 && passage < numMicrobatches * circularRepeat;
      if (!isValid) return { isValid, microbatch: 0, repeat: 0 };
      return {
        isValid,
        microbatch: passage % numMicrobatches,
        repeat: Math.floor(passage / numMicrobatches),
      };
    }),
  );
}
