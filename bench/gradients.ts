/**
 * @file `npm run bench:gradients`: the first step's gradient in machine code compared with ONNX Runtime's, on the GPT
 * shapes.
 */
import { parseArgs } from 'node:util';
import { compile, type Engine, flatViews, type HostArray, type Tree } from '../src/compiler/index.js';
import { build } from '../src/hparams/index.js';
import { BatchBuffers } from '../src/programs/batchBuffers.js';
import { trainSpecs } from '../src/programs/stepCalls.js';
import { initialize, trainStateOf } from '../src/programs/taskState.js';
import { markdownTable } from '../src/review/text/reportFormat.js';
import { trainStep } from '../src/tasks/index.js';
import { jobOptions } from './gptJob.js';
import type { Precision } from './results.js';
import { shapes, usualShapes } from './shapes.js';

/** The loss and all gradients, concatenated. */
async function gradients(shape: string, engine: Engine, precision: Precision): Promise<Float32Array> {
  const options = jobOptions(shapes[shape]!, engine, undefined, precision);
  const task = build(options.task);
  const state = trainStateOf(task);
  await initialize(options, task, state);
  const input = build(options.datasets[0]!);
  const batch = await input.peek();
  const buffers = new BatchBuffers('train', batch);
  buffers.load(batch);
  const program = await compile(trainStep(task), trainSpecs(task, state, buffers), {
    engine,
    name: `${shape}_${precision}`,
  });
  const call = program.bind({
    inputs: {
      params: flatViews(state.layout, state.params),
      batch: buffers.arrays,
      prngKey: new Int32Array(2),
    } as Tree<HostArray>,
  });
  const outputs = (await call.run()) as unknown as {
    loss: { data: Float32Array };
    grads: Record<string, { data: Float32Array }>;
  };
  const parts = [outputs.loss, ...task.trainablePaths().map((path) => outputs.grads[path]!)].map(
    ({ data }) => data,
  );
  const all = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  await program.dispose();
  return all;
}

/** |a - b| / |b| in the Euclidean norm, without the loss. */
function distance(a: Float32Array, b: Float32Array): number {
  let [difference, norm] = [0, 0];
  for (let i = 1; i < b.length; i++) {
    difference += (a[i]! - b[i]!) ** 2;
    norm += b[i]! ** 2;
  }
  return Math.sqrt(difference / norm);
}

const { values } = parseArgs({
  options: { shapes: { type: 'string', default: usualShapes.join(',') } },
});
const rows: string[][] = [];
for (const shape of values.shapes.split(',')) {
  const reference = await gradients(shape, 'onnx', 'f32');
  for (const precision of ['f32', 'bf16'] as const) {
    const found = await gradients(shape, 'native', precision);
    rows.push([
      shape,
      precision,
      distance(found, reference).toExponential(1),
      found[0]!.toFixed(6),
      reference[0]!.toFixed(6),
    ]);
    process.stderr.write(`${rows.at(-1)!.join('  ')}\n`);
  }
}
process.stdout.write(
  `${markdownTable(rows, ['shape', 'precision', 'relative distance', 'loss', "ONNX Runtime's loss"])}\n`,
);
process.exit();
