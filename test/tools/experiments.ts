/** @file Experiments that are built in no time, for tests of the commands that look at many. */
import { scratchProject } from './scratch.js';

/** A project of one's own. */
export const project = scratchProject;

/** A file's beginning: a family of experiments, 31 lines. */
export const family = `import { z } from 'zod';
import { AdamW, Experiment, gpt2Lm, LanguageModel, Learner, SingleTask, SyntheticLmInput, Train } from 'luthier';

/** Small models on synthetic tokens. */
export abstract class Family extends Experiment.with({
  modelDims: z.int().positive().default(16).describe('Depth.'),
  seqLen: z.int().default(16),
  evalLen: z.int().default(16),
  rate: z.number().default(1e-2),
  spare: z.int().default(1),
}) {
  override task() {
    const { modelDims, seqLen } = this;
    const lmTpl = gpt2Lm({ vocabSize: 32, modelDims, numLayers: 1, numHeads: 2, maxSeqLength: seqLen });
    const optimizer = AdamW.config({ learningRate: this.rate });
    return SingleTask.config({
      model: LanguageModel.config({ lmTpl }),
      train: Train.config({ learner: Learner.config({ optimizer }), numTrainSteps: 5 }),
    });
  }

  override datasets() {
    const values = { vocabSize: 32, batchSize: 2 };
    return [
      SyntheticLmInput.config({ ...values, name: 'train', isTraining: true, seqLen: this.seqLen }),
      SyntheticLmInput.config({ ...values, name: 'test', seqLen: this.evalLen }),
    ];
  }
}
`;

interface Experiment {
  readonly name: string;
  readonly seconds: number;
}

/** What `luthier validate` says of each experiment, by its name, without times. */
export function byName(stdout: string): Record<string, unknown> {
  const { experiments } = JSON.parse(stdout) as { experiments: Experiment[] };
  return Object.fromEntries(experiments.map(({ name, seconds, ...said }) => [name, said]));
}
