/** @file Differences between ONNX Runtime's predictions of an exported file and the run's. */
import { type HostArray, type HostTensor, loadRuntime, newHostArray, sizeOf } from '../compiler/index.js';
import { JobError } from '../runs/index.js';
import type { ExportedOnnx } from './exportOnnx.js';
import { withRows } from './predictor.js';
import type { TrainedRun } from './trainedRun.js';

/** Largest difference, as a share of the largest value, that rounding explains: that of products in bfloat16. */
const MOST_DIFFERENCE = 0.05;
/** Numbers of rows that are compared. */
const ROWS = [1, 3];

/** An array of zeros and ones, which are indices of any table but the smallest. */
function alternating({ shape, dtype }: Pick<HostTensor, 'shape' | 'dtype'>): HostTensor {
  const data = newHostArray(dtype, sizeOf(shape));
  for (let i = 0; i < data.length; i += 3) data[i] = 1;
  return { shape, dtype, data };
}

function differenceOf(found: HostArray, expected: HostArray): number {
  let [largest, difference] = [0, 0];
  for (const [i, value] of expected.entries()) {
    largest = Math.max(largest, Math.abs(value));
    difference = Math.max(difference, Math.abs(found[i]! - value));
  }
  return largest === 0 ? difference : difference / largest;
}

/**
 * Runs an exported file in ONNX Runtime on batches of two sizes.
 *
 * @returns the largest difference of a float prediction from the run's, as a share of the largest value.
 * @throws JobError where that is more than rounding.
 */
export async function compareOnnx(
  run: TrainedRun,
  bytes: Uint8Array,
  { inputs, outputs }: Pick<ExportedOnnx, 'inputs' | 'outputs'>,
): Promise<number> {
  const { InferenceSession, Tensor } = await loadRuntime();
  const session = await InferenceSession.create(bytes, { logSeverityLevel: 4 });
  let difference = 0;
  for (const rows of ROWS) {
    const specs = withRows(run.batchSpecs!, rows);
    const arrays = inputs.map((path): [string, HostTensor] => [path, alternating(specs[path]!)]);
    const feeds = arrays.map(([path, { dtype, data, shape }]) => [
      path,
      new Tensor(dtype, data as Float32Array, shape),
    ]);
    const found = await session.run(Object.fromEntries(feeds));
    const expected = await run.predict(Object.fromEntries(arrays));
    for (const name of outputs) {
      const { dtype, data } = expected[name]!;
      if (dtype !== 'float32') continue;
      difference = Math.max(difference, differenceOf(found[name]!.data as Float32Array, data));
    }
  }
  await session.release();
  if (difference <= MOST_DIFFERENCE) return difference;
  throw new JobError(
    `The ONNX file computes different values than the run: predictions differ by ${difference.toPrecision(2)} of the largest value.`,
  );
}
