/** @file `npm run bench:optimizers`: updates of 23M parameters by machine code, and beside each PyTorch's, where the peers are. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { createTrainState } from '../src/checkpoints/index.js';
import { compile, uniform } from '../src/compiler/index.js';
import { prngKey } from '../src/compiler/random/prng.js';
import { build, type Config } from '../src/hparams/index.js';
import {
  Adafactor,
  AdamW,
  type BaseOptimizer,
  changingPart,
  fillSlots,
  Learner,
  Lion,
  Muon,
  Shampoo,
  slotBytes,
} from '../src/learners/index.js';
import { hasPeers, peersPython } from './programs.js';

/** Matrices and scales of a GPT with 6 layers of width 512 and 8192 tokens. */
const variables = [
  { path: 'embedding', shape: [8192, 512] },
  ...Array.from({ length: 6 }, (_, layer) => [
    { path: `${layer}/attention`, shape: [512, 1536] },
    { path: `${layer}/post`, shape: [512, 512] },
    { path: `${layer}/up`, shape: [512, 2048] },
    { path: `${layer}/down`, shape: [2048, 512] },
    { path: `${layer}/scale`, shape: [512] },
  ]).flat(),
];

const learningRate = 1e-4;

/** Steps from roots to roots of Shampoo: a figure is the mean of as many. */
const ROOTS = 20;

const shampoo = {
  learningRate,
  blockSize: 512,
  startPreconditioningStep: 0,
  preconditioningComputeSteps: ROOTS,
};

const CASES: Readonly<Record<string, { of: Config<BaseOptimizer>; steps?: number; peer?: string }>> = {
  AdamW: { of: AdamW.config({ learningRate }), peer: 'torch.optim.AdamW, fused' },
  'AdamW, slots in bfloat16': { of: AdamW.config({ learningRate, slotDtype: 'bfloat16' }) },
  'AdamW, slots in int8': { of: AdamW.config({ learningRate, slotDtype: 'int8' }) },
  'AdamW, slots in int8, to nearest': {
    of: AdamW.config({ learningRate, slotDtype: 'int8', slotRounding: 'nearest' }),
  },
  Lion: { of: Lion.config({ learningRate }), peer: 'pytorch_optimizer.Lion' },
  Adafactor: { of: Adafactor.config({ learningRate }), peer: 'torch.optim.Adafactor' },
  Muon: { of: Muon.config({ learningRate }) },
  // As PyTorch's does.
  'Muon, products in bfloat16': {
    of: Muon.config({ learningRate, newtonSchulzDtype: 'bfloat16' }),
    peer: 'torch.optim.Muon',
  },
  Shampoo: {
    of: Shampoo.config({ ...shampoo, graftType: 'sgd' }),
    steps: ROOTS,
    peer: 'pytorch_optimizer.ScalableShampoo',
  },
};

/** Of a list of figures, the least and the median. */
function leastAndMedian(figures: readonly number[]): [number, number] {
  const sorted = figures.toSorted((a, b) => a - b);
  return [sorted[0]!, sorted[Math.floor(sorted.length / 2)]!];
}

/** Least and median milliseconds of a step, and least CPU time of all threads; of several steps, their mean. */
async function measure(optimizer: Config<BaseOptimizer>, steps: number): Promise<string> {
  const learner = build(Learner.config({ optimizer, checkValidStep: false }));
  const layout = learner.layout(variables);
  const slotLayouts = learner.slotLayouts(layout);
  const { params, slots } = createTrainState(layout, slotLayouts);
  fillSlots({ params, slots, slotLayouts });
  const grads = new Float32Array(changingPart(layout).size);
  grads.set(uniform(prngKey(1), grads.length).map((each) => 2 * each - 1));
  const updater = learner.createUpdater(layout, { params, grads, slots });
  const { f, inputs } = updater.following;
  const program = await compile(f, inputs, { engine: 'native', name: 'update' });
  const call = program.bind({ inputs: updater.inputs as never, outputs: updater.outputs });
  const [milliseconds, ofCpu]: [number[], number[]] = [[], []];
  let step = 0;
  for (const end = performance.now() + 1500; performance.now() < end || milliseconds.length < 3; ) {
    const [before, busy] = [performance.now(), process.cpuUsage()];
    for (let i = 0; i < steps; i++) {
      updater.prepare(step++);
      await call.run();
    }
    milliseconds.push((performance.now() - before) / steps);
    const { user, system } = process.cpuUsage(busy);
    ofCpu.push((user + system) / 1e3 / steps);
  }
  await program.dispose();
  // The first has memory to take.
  const [least, median] = leastAndMedian(milliseconds.slice(1));
  const [cpu] = leastAndMedian(ofCpu.slice(1));
  const bytes = (slotBytes(slotLayouts) / 1e6).toFixed(0);
  return `${least.toFixed(1)} ms, median ${median.toFixed(1)}, CPU ${cpu.toFixed(1)}, slots ${bytes} MB`;
}

const only = process.argv.slice(2);
for (const [name, { of, steps = 1, peer }] of Object.entries(CASES)) {
  if (only.length > 0 && !only.includes(name)) continue;
  process.stdout.write(`${name}: ${await measure(of, steps)}\n`);
  if (peer === undefined || !hasPeers) continue;
  const script = fileURLToPath(new URL('peers/torch_optimizers.py', import.meta.url));
  execFileSync(peersPython, [script, peer, `--steps=${steps}`], { stdio: 'inherit' });
}
process.exit();
