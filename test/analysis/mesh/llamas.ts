/** @file Llama's published sizes as trainings on meshes that lay weights and rows over one axis. */
import { build } from '../../../src/hparams/index.js';
import { SyntheticLmInput } from '../../../src/inputs/index.js';
import { StackedTransformerRepeated } from '../../../src/layers/index.js';
import { Adam, Learner } from '../../../src/learners/index.js';
import { LanguageModel, type LlamaOptions, llamaLm } from '../../../src/models/index.js';
import { Mesh, SingleTask, Train } from '../../../src/tasks/index.js';

const GROUPED = { numKvHeads: 8 };

/** Llama 2 and 3.1 (Touvron et al., 2023; Grattafiori et al., 2024). */
const LLAMAS = {
  'Llama 3.1 8B': {
    ...{ vocabSize: 128_256, modelDims: 4096, numLayers: 32, numHeads: 32, hiddenDims: 14_336, ...GROUPED },
  },
  'Llama 2 70B': {
    ...{ vocabSize: 32_000, modelDims: 8192, numLayers: 80, numHeads: 64, hiddenDims: 28_672, ...GROUPED },
  },
  'Llama 3.1 70B': {
    ...{ vocabSize: 128_256, modelDims: 8192, numLayers: 80, numHeads: 64, hiddenDims: 28_672, ...GROUPED },
  },
} as const satisfies Record<string, LlamaOptions>;

/** A training as it is published. */
export interface Published {
  readonly model: keyof typeof LLAMAS;
  readonly devices: number;
  readonly rowsPerDevice: number;
  readonly seqLen: number;
  /** What layers keep. */
  readonly policy: string;
}

/** A training: products in bfloat16, Adam, rows and the depth of every weight over the axis `data`. */
export function llamaTraining({ model, devices, rowsPerDevice, seqLen, policy }: Published) {
  const options: LlamaOptions = LLAMAS[model];
  const { numLayers, modelDims, vocabSize } = options;
  const lmTpl = llamaLm(options);
  const { hiddenDims, numHeads, dimPerHead, transformerLayerParamsTpl } = lmTpl.stackedTransformerTpl;
  lmTpl.stackedTransformerTpl = StackedTransformerRepeated.config({
    ...{ hiddenDims, numHeads, dimPerHead, transformerLayerParamsTpl },
    ...{ xTimes: numLayers, remat: true, checkpointPolicy: policy as 'SAVE_NOTHING' },
  });
  const task = SingleTask.config({
    model: LanguageModel.config({ fpropDtype: 'bfloat16', lmTpl }),
    train: Train.config({ learner: Learner.config({ optimizer: Adam.config({ learningRate: 1e-4 }) }) }),
  });
  const splits = build(task).variables.flatMap(({ path, shape }) => {
    const depth = shape.lastIndexOf(modelDims);
    return shape.length < 2 ? [] : [[path, shape.map((_, i) => (i === depth ? 'data' : null))] as const];
  });
  task.mesh = Mesh.config({
    iciMeshShape: [1, devices, 1],
    weightSplitDimsMapping: Object.fromEntries(splits),
  });
  return {
    ...{ name: model, task },
    datasets: [
      SyntheticLmInput.config({ batchSize: rowsPerDevice * devices, seqLen, vocabSize, isTraining: true }),
    ],
  };
}
