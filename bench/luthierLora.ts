/** @file Timing of a step of LoRA on a Llama shape, one measurement per process; prints one line of JSON. */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Profiler } from '../src/compiler/index.js';
import { addLora, LORA_VARIABLES } from '../src/layers/index.js';
import { AdamW, Learner } from '../src/learners/index.js';
import { LanguageModel, llamaLm } from '../src/models/index.js';
import { SingleTask, Train } from '../src/tasks/index.js';
import { openProgram, optionsOf } from './gptJob.js';
import type { LoraResult, Precision } from './results.js';
import type { Shape } from './shapes.js';
import { showProfile, timeSteps } from './stepTimes.js';

const { values: flags } = parseArgs({
  options: {
    precision: { type: 'string', default: 'f32' },
    steps: { type: 'string', default: '5' },
    threads: { type: 'string' },
    /** Tables of the time that kinds of work and layers take, on stderr. */
    profile: { type: 'boolean', default: false },
  },
});

/** Of the model, of a batch, whose rows are short, and the rank of changes; the peer reads it as well. */
interface LoraShape extends Omit<Shape, 'steps'> {
  readonly kvHeads: number;
  readonly hidden: number;
  readonly rank: number;
}

const shape: LoraShape = JSON.parse(readFileSync(new URL('loraShape.json', import.meta.url), 'utf8'));
const { vocabulary: vocabSize, width: modelDims, layers, heads, kvHeads, hidden, rank } = shape;
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
const threads = flags.threads === undefined ? undefined : Number(flags.threads);
const profiler = flags.profile ? new Profiler() : undefined;
const program = await openProgram({ ...optionsOf(task, shape, 'native', threads), profiler });
const { loss: firstLoss } = await program.run();
profiler?.programs[0]?.restart();
let loss = firstLoss;
const times = await timeSteps(
  async () => {
    ({ loss } = await program.run());
  },
  { steps: Number(flags.steps) },
);
if (profiler !== undefined) await showProfile(profiler, flags.precision as Precision);
const { entries } = program.state.layout;
const sizeOf = (pattern: RegExp): number =>
  entries.filter(({ name }) => pattern.test(`/${name}`)).reduce((sum, { size }) => sum + size, 0);
const result: LoraResult = {
  ...{ parameters: sizeOf(/./), trained: sizeOf(new RegExp(LORA_VARIABLES)), firstLoss, loss },
  ...times,
  peakRssMb: process.resourceUsage().maxRSS / 1024,
};
process.stdout.write(JSON.stringify(result));
process.exit();
