/** @file Segment ids on tfjs's backends, whose kernels leave out rows with ids that are too large, not only negative ones. */
import * as tf from '../tfjs/tfjs.js';

const KERNEL = 'UnsortedSegmentSum';
const prepared = new Set<string>();

/** Has the sum by segments of a backend refuse ids that are too large, in the words of tfjs's gather. */
export function checkSegmentIds(backendName: string): void {
  const kernel = tf.getKernel(KERNEL, backendName);
  if (kernel === undefined || prepared.has(backendName)) return;
  prepared.add(backendName);
  tf.unregisterKernel(KERNEL, backendName);
  const kernelFunc: tf.KernelFunc = (args) => {
    const { numSegments } = args.attrs as { numSegments: number };
    const ids = (args.backend as tf.KernelBackend).readSync(args.inputs.segmentIds!.dataId) as Int32Array;
    const bad = ids.find((id) => id >= numSegments);
    if (bad !== undefined)
      throw new Error(`${KERNEL}: the index value ${bad} is not in [0, ${numSegments - 1}]`);
    return kernel.kernelFunc(args);
  };
  tf.registerKernel({ ...kernel, kernelFunc });
}
