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

/** Turns of a device that holds an equal share of the stages, in order. */
export interface DeviceTurns {
  /** In which it works. */
  readonly worked: number;
  /** As long as all iterations take together: in each, devices wait for the one with the most work. */
  readonly elapsed: number;
}

/** The turns of each of so many devices. Where they don't divide the stages, each has all of them. */
export function deviceTurns(sizes: PipelineSizes, devices: number): DeviceTurns {
  const { numStages, numMicrobatches, circularRepeat } = sizes;
  const own = numStages % devices === 0 ? numStages / devices : numStages;
  const working = turnsOf(sizes).map((turns) => {
    const ofDevices = Array.from({ length: numStages / own }, (_, device) =>
      turns.slice(device * own, (device + 1) * own),
    );
    return Math.max(...ofDevices.map((some) => some.filter(({ isValid }) => isValid).length));
  });
  return {
    worked: own * numMicrobatches * circularRepeat,
    elapsed: working.reduce((sum, each) => sum + each, 0),
  };
}

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
