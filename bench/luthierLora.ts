/** @file Timing of a step of LoRA on a Llama shape, one measurement per process; prints one line of JSON. */
import { parseArgs } from 'node:util';
import { addLora, LORA_VARIABLES } from '../src/layers/index.js';
import { AdamW, Learner } from '../src/learners/index.js';
import { LanguageModel, llamaLm } from '../src/models/index.js';
import { SingleTask, Train } from '../src/tasks/index.js';
import { openProgram, optionsOf } from './gptJob.js';
import { loraShape, rank } from './loraShape.js';
import { median } from './results.js';

const { values: flags } = parseArgs({
  options: {
    precision: { type: 'string', default: 'f32' },
    steps: { type: 'string', default: '5' },
  },
});
const { vocabulary: vocabSize, width: modelDims, layers, heads, kvHeads, hidden } = loraShape;
const model = LanguageModel.config({
  lmTpl: llamaLm({
    ...{ vocabSize, modelDims, numLayers: layers, numHeads: heads },
    ...{ numKvHeads: kvHeads, hiddenDims: hidden, tiedEmbeddings: true },
  }),
});
// Frozen weights are held, and multiplied, in this precision.
if (flags.precision === 'bf16') model.dtype = 'bfloat16';
addLora(model, { rank });
const optimizer = AdamW.config({ learningRate: 1e-3, beta2: 0.99, clipGradientNormToValue: 1 });
const learner = Learner.config({ optimizer, bpropVariableInclusion: [LORA_VARIABLES] });
const task = SingleTask.config({ model, train: Train.config({ learner }) });
const program = await openProgram(optionsOf(task, loraShape, 'native'));
const { loss: firstLoss } = await program.run();
const milliseconds: number[] = [];
let loss = firstLoss;
for (let i = 0; i < Number(flags.steps); i++) {
  const started = performance.now();
  ({ loss } = await program.run());
  milliseconds.push(performance.now() - started);
}
const { entries } = program.state.layout;
const sizeOf = (pattern: RegExp): number =>
  entries.filter(({ name }) => pattern.test(`/${name}`)).reduce((sum, { size }) => sum + size, 0);
process.stdout.write(
  JSON.stringify({
    ...{ parameters: sizeOf(/./), trained: sizeOf(new RegExp(LORA_VARIABLES)), firstLoss, loss },
    ...{ medianMs: median(milliseconds), minMs: Math.min(...milliseconds) },
    peakMb: process.resourceUsage().maxRSS / 1024,
  }),
);
process.exit();
