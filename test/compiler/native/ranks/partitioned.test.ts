/** @file Partitioned programs with their collectives inside of one native step, against one process. */
import { describe, expect, test } from 'vitest';
import { ops, type Tensor, tf, valueAndGrad } from '../../../../src/compiler/index.js';
import { optimize } from '../../../../src/compiler/passes/index.js';
import { type MeshShape, partition, type Sharding } from '../../../../src/compiler/spmd/index.js';
import { traceProgram } from '../../../../src/compiler/trace/tracedProgram.js';
import { partOf, wholeFrom } from '../../spmd/ranks.js';
import { expectClose } from '../../support.js';
import { floats } from '../../values.js';
import { hasCompiler } from '../compilerSupport.js';
import { runOnThreads } from './rankPrograms.js';

/** The loss of two layers around an attention, and its gradients. */
function network([x, up, qkv, down]: Tensor[]): Tensor[] {
  const loss = (params: Tensor[]) => {
    const hidden = tf.relu(tf.matMul(x!, params[0]!));
    const [q, k, v] = tf
      .split(tf.matMul(hidden, params[1]!), 3, 1)
      .map((part) => tf.reshape(part, [2, 4, 2, 4])) as any;
    const mixed = tf.reshape(ops.attention(q, k, v, { causal: true }) as any, [8, 8]);
    return { value: tf.mean(tf.square(tf.matMul(mixed, params[2]!))) as Tensor, aux: {} };
  };
  const { value, grads } = valueAndGrad(loss as any, [up!, qkv!, down!] as any);
  return [value, ...(grads as any)];
}

const inputs = [
  floats([8, 6]),
  floats([6, 8], -1, 1, 2),
  floats([8, 24], -1, 1, 3),
  floats([8, 4], -1, 1, 4),
];
/** x over rows; weights over columns, rows, or not at all. */
const cases: [mesh: MeshShape, shardings: Sharding[]][] = [
  [
    [2],
    [
      [[0], []],
      [[], []],
      [[], []],
      [[], []],
    ],
  ],
  [
    [4],
    [
      [[], []],
      [[], [0]],
      [[0], []],
      [[], [0]],
    ],
  ],
  [
    [2, 2],
    [
      [[0], []],
      [[], [1]],
      [[1], []],
      [[1], [0]],
    ],
  ],
];

describe.skipIf(!hasCompiler)('a step', () => {
  test.each(cases)('on the mesh %j is that of one process', async (mesh, shardings) => {
    const graph = optimize(traceProgram(network as any, inputs).graph);
    const outputs: Sharding[] = [[], ...shardings.slice(1)];
    const own = optimize(partition(graph, { inputs: shardings, outputs }, mesh).own);
    const ranks = mesh.reduce((a, b) => a * b, 1);
    const parts = Array.from({ length: ranks }, (_, rank) =>
      inputs.map(({ data, shape }, i) => partOf(data, shape, shardings[i]!, mesh, rank)),
    );
    const [expected] = await runOnThreads([graph], [inputs.map(({ data }) => data)]);
    const results = await runOnThreads([own], parts);
    graph.outputs.forEach(({ shape, dtype }, i) => {
      const data = wholeFrom(
        results.map((each) => each[i]!),
        shape,
        outputs[i]!,
        mesh,
      );
      const one = expected![i]!;
      const tolerance = { relative: 0, absolute: 1e-5 * Math.max(...Array.from(one, Math.abs)) };
      expectClose({ shape, dtype, data }, { shape, dtype, data: one }, tolerance, `output ${i}`);
    });
    expect(await runOnThreads([own], parts)).toEqual(results);
  });
});
