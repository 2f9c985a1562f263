/** @file The program of one rank: which collectives it has, and what ranks compute together. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import {
  type HostTensor,
  ops,
  type Tensor,
  type TensorSpec,
  tf,
  valueAndGrad,
} from '../../../src/compiler/index.js';
import { optimize } from '../../../src/compiler/passes/index.js';
import { partition, partitionProgram, type Sharding } from '../../../src/compiler/spmd/index.js';
import { traceProgram } from '../../../src/compiler/trace/tracedProgram.js';
import { temporaryDirectory } from '../../command.js';
import { program } from '../cases/case.js';
import { caseTable } from '../cases/index.js';
import { expectClose } from '../support.js';
import { floats, ints } from '../values.js';
import { collectivesOf, drawsOf, expectSharing, MESHES, opsOf } from './partitionAgreement.js';
import { partOf, runRanks, wholeFrom } from './ranks.js';

const float = (...shape: number[]): TensorSpec => ({ shape, dtype: 'float32' });

/** A rank's program of a function of tensors. */
function ofRank(
  f: (inputs: any[]) => Tensor[],
  specs: readonly TensorSpec[],
  inputs: readonly (Sharding | undefined)[],
  outputs: readonly (Sharding | undefined)[],
  mesh: readonly number[],
) {
  const { graph } = traceProgram(f as any, [...specs]);
  return optimize(partition(optimize(graph), { inputs, outputs }, mesh).own);
}

describe('collectives', () => {
  test('columns, then rows of a weight: one sum forward, and one backward', () => {
    const loss = ([x, up, down]: Tensor[]) =>
      tf.mean(tf.square(tf.matMul(tf.relu(tf.matMul(x!, up!)), down!)));
    const f = (inputs: Tensor[]) => {
      return valueAndGrad((parts: any) => ({ value: loss(parts), aux: [] }), inputs as any).grads as any;
    };
    const shardings = [undefined, [[], [0]], [[0], []]] as const;
    const graph = ofRank(f, [float(8, 6), float(6, 12), float(12, 6)], shardings, shardings, [4]);
    expect(collectivesOf(graph)).toEqual(['AllReduce [8,6] over 0', 'AllReduce [8,6] over 0']);
    expect(graph.outputs.map(({ shape }) => shape)).toEqual([
      [8, 6],
      [6, 3],
      [3, 6],
    ]);
  });

  test('three products of one operand: their gradients are added before ranks are asked', () => {
    const f = ([dy, a, b, c]: Tensor[]) => {
      const terms = [a, b, c].map((w) => tf.matMul(dy!, w!, false, true));
      return [tf.add(tf.add(terms[0]!, terms[1]!), terms[2]!)];
    };
    const specs = [float(8, 32), float(6, 32), float(6, 32), float(6, 32)];
    const graph = ofRank(f, specs, [[[], [0]], ...new Array<Sharding>(3).fill([[], [0]])], [undefined], [2]);
    expect(collectivesOf(graph)).toEqual(['AllReduce [8,6] over 0']);
  });

  test('a sum that is wanted in parts is scattered', () => {
    const f = ([x, w]: Tensor[]) => [tf.matMul(x!, w!)];
    const graph = ofRank(
      f,
      [float(8, 6), float(6, 4)],
      [
        [[], [0]],
        [[0], []],
      ],
      [[[0], []]],
      [2],
    );
    expect(collectivesOf(graph)).toEqual(['ReduceScatter [8,4] over 0']);
  });

  test('rows to columns is one exchange', () => {
    const graph = ofRank(([x]) => [tf.neg(x)], [float(8, 6)], [[[0], []]], [[[], [0]]], [2]);
    expect(collectivesOf(graph)).toEqual(['AllToAll [4,6] over 0']);
  });

  test('an axis of one device splits nothing', () => {
    const f = ([x, w]: Tensor[]) => [ops.withSharding(tf.matMul(x!, w!), [[0], [1]])];
    const shardings = [
      [[], [0, 1]],
      [[1], [0]],
    ] as const;
    const graph = ofRank(f, [float(8, 6), float(6, 4)], shardings, [[[1], [0]]], [1, 1]);
    expect(opsOf(graph)).toEqual(['BatchMatMul']);
  });

  test('heads by ranks: no rank is asked in attention', () => {
    const f = ([q, k, v]: any[]) => [ops.attention(q, k, v, { causal: true })];
    const heads: Sharding = [[], [], [0], []];
    const graph = ofRank(
      f,
      [float(2, 5, 4, 3), float(2, 5, 4, 3), float(2, 5, 4, 3)],
      [heads, heads, heads],
      [heads],
      [2],
    );
    expect(opsOf(graph)).toEqual(['Attention']);
  });

  test('classes by ranks: softmax, labels and the best class are told by numbers of rows', () => {
    const f = ([logits, labels]: any[]) => [
      ops.softmaxCrossEntropy(logits, labels),
      tf.cast(tf.argMax(logits, -1), 'float32'),
    ];
    const specs = [float(5, 8), { shape: [5], dtype: 'int32' } as const];
    const graph = ofRank(f, specs, [[[], [0]], undefined], [undefined, undefined], [4]);
    const sent = collectivesOf(graph);
    expect(sent.every((each) => /^AllReduce \[5(,1)?\] over 0$/.test(each))).toBe(true);
    expect(sent.length).toBe(4);
  });
});

describe('weights that are split over ranks with other rows', () => {
  const mesh = [2, 2];
  const specs = [float(4, 6), float(6, 4)];
  // The weight's rows lie over the axis of rows, its columns over the other.
  const weight: Sharding = [[0], [1]];
  const { graph } = traceProgram(
    (([x, w]: any[]) =>
      valueAndGrad(
        (part: any) => ({ value: tf.sum(tf.square(tf.matMul(x, part))), aux: [] }),
        w as any,
      )) as any,
    specs,
  );
  const whole = optimize(graph);
  const own = optimize(
    partition(whole, { inputs: [undefined, weight], outputs: [undefined, weight], rowAxes: [0] }, mesh).own,
  );

  test('are gathered before they are read, and their gradient is scattered as it is added up', () => {
    expect(collectivesOf(own)).toEqual([
      'AllGather [3,2] over 0',
      'AllReduce [] over 1',
      'ReduceScatter [6,2] over 0',
    ]);
  });

  test('have the gradients of all rows', async () => {
    const w = floats([6, 4], -1, 1, 3);
    const rows = [floats([4, 6], -1, 1, 4), floats([4, 6], -1, 1, 5)];
    const given = [0, 1, 2, 3].map((rank) => [
      rows[rank >> 1]!.data,
      partOf(w.data, w.shape, weight, mesh, rank),
    ]);
    const [, grads] = await runRanks(own, given);
    const [, alone] = await runRanks(
      whole,
      rows.map(({ data }) => [data, w.data]),
    );
    const sum = alone![0]!.map((value, i) => value + alone![1]![i]!);
    const data = wholeFrom(grads!, w.shape, weight, mesh);
    expectClose({ ...w, data }, { ...w, data: sum }, { relative: 1e-5, absolute: 1e-5 });
  });
});

describe('layers whose weights lie over ranks that have other rows', () => {
  const count = 3;
  const matrices: Sharding = [[], [0], []];

  /** A rank's masked gradients of layers by their weights, [count, 4, 4]. */
  function gradientsOf(layers: (x: any, w: any) => any, outputs: Sharding = matrices) {
    const f = ([x, w, weight]: any[]) => {
      const loss = (part: any) => ({ value: tf.sum(tf.square(layers(x, part))), aux: [] });
      const isKept = tf.greater(weight, 0);
      const { grads } = valueAndGrad(loss as any, w as any) as any;
      return [tf.where(isKept, grads, tf.zerosLike(grads))];
    };
    const { graph } = traceProgram(f as any, [float(8, 4), float(count, 4, 4), float()]);
    const borders = { inputs: [undefined, matrices, undefined], outputs: [outputs], rowAxes: [0] };
    return optimize(partition(optimize(graph), borders, [2]).own);
  }

  const inLoop = (x: any, w: any) =>
    ops.scan((y: any, each: any) => [tf.tanh(tf.matMul(y, each)), {}], x, w)[0];

  test('each turn of a loop gathers its own, its gradient once more, which scatters what it masks', () => {
    const graph = gradientsOf(inLoop);
    expect(collectivesOf(graph)).toEqual([]);
    const [forward, backward] = graph.nodes
      .filter(({ op }) => op === 'Scan')
      .map(({ bodies }) => bodies![0]!);
    expect(collectivesOf(forward!)).toEqual(['AllGather [2,4] over 0']);
    expect(collectivesOf(backward!)).toEqual(['AllGather [2,4] over 0', 'ReduceScatter [4,4] over 0']);
    expect(opsOf(backward!).filter((op) => op === 'Select')).toEqual(['Select']);
  });

  test('a loop over axes that are split themselves has all of them', () => {
    const graph = gradientsOf(inLoop, [[], [], []]);
    expect(collectivesOf(graph)).toEqual([]);
    const { graph: whole } = traceProgram((([x, w]: any[]) => [inLoop(x, w)]) as any, [
      float(8, 4),
      float(4, 4, 4),
    ]);
    const borders = { inputs: [undefined, [[0], [], []]], outputs: [undefined], rowAxes: [0] };
    expect(collectivesOf(partition(optimize(whole), borders, [2]).own)).toEqual(['AllGather [2,4,4] over 0']);
  });

  test('without a loop, gradients gather again but what was gathered last', () => {
    const layers = (x: any, w: readonly any[]) => w.reduce((y, each) => tf.tanh(tf.matMul(y, each)), x);
    const f = ([x, ...w]: any[]) => {
      const loss = (parts: any) => ({ value: tf.sum(tf.square(layers(x, parts))), aux: [] });
      return (valueAndGrad(loss as any, w as any) as any).grads;
    };
    const own: Sharding = [[0], []];
    const { graph } = traceProgram(f as any, [float(8, 4), float(4, 4), float(4, 4), float(4, 4)]);
    const borders = { inputs: [undefined, own, own, own], outputs: [own, own, own], rowAxes: [0] };
    const rank = optimize(partition(optimize(graph), borders, [2]).own);
    const gather = 'AllGather [2,4] over 0';
    const scatter = 'ReduceScatter [4,4] over 0';
    // No gradient reads the first layer's.
    expect(collectivesOf(rank)).toEqual([gather, gather, gather, scatter, gather, scatter, scatter]);
  });
});

test('a constraint splits a tensor and its gradient, and leaves no operation', () => {
  const f = ([x]: any[]) =>
    valueAndGrad(
      (part: any) => ({ value: tf.sum(tf.square(ops.withSharding(tf.exp(part), [[0], []]))), aux: [] }),
      x,
    ).grads as any;
  const graph = ofRank((inputs) => [f(inputs)], [float(8, 4)], [undefined], [undefined], [2]);
  expect(collectivesOf(graph)).toEqual(['AllGather [4,4] over 0']);
  expect(opsOf(graph)).not.toContain('ShardingConstraint');
  const wrong = () =>
    ofRank(([x]) => [ops.withSharding(x, [[1], []])], [float(8, 4)], [undefined], [undefined], [2]);
  expect(wrong).toThrow("A tensor of '', [8,4], can't be split as [[1],[]] over a mesh of 2");
});

test('loops keep the shardings of what they carry', () => {
  const f = ([w, x]: any[]) => [
    ops.scan((carry: any, each: any) => [tf.relu(tf.matMul(carry, each)), tf.sum(carry)], x, w)[0],
  ];
  const graph = ofRank(f, [float(3, 4, 4), float(6, 4)], [undefined, [[0], []]], [[[0], []]], [2]);
  const [loop] = graph.nodes.filter(({ op }) => op === 'Scan');
  expect(loop!.bodies![0]!.inputs.map(({ shape }) => shape)).toEqual([
    [3, 4],
    [4, 4],
  ]);
});

test('a dump has the shardings, the program of a rank, and how much its collectives send in all turns', () => {
  const f = ({ x, w }: any) =>
    ops.scan((carry: any, each: any) => [tf.relu(tf.matMul(carry, each)), tf.sum(carry)], x, w)[0];
  const traced = traceProgram(f as any, { x: float(6, 4), w: float(3, 4, 4) });
  const folder = temporaryDirectory();
  vi.stubEnv('LUTHIER_DUMP', folder);
  const rows: Sharding = [[0], []];
  const borders = {
    inputs: (path: string) => (path === 'x' ? rows : ([[], [], [0]] as Sharding)),
    outputs: () => rows,
    axisNames: ['rows'],
  };
  partitionProgram(traced, borders, [2], 'net');
  vi.unstubAllEnvs();
  const [dump] = readdirSync(folder) as [string];
  expect(dump).toMatch(/^net_partition-[0-9a-f]{8}$/);
  const text = (file: string) => readFileSync(join(folder, dump, file), 'utf8');
  expect(readdirSync(join(folder, dump)).sort()).toEqual(['collectives.txt', 'rank.txt', 'shardings.txt']);
  expect(text('shardings.txt')).toMatch(/^v\d+ = float32\[6 over rows, 4\] input x$/m);
  expect(text('rank.txt')).toMatch(/^v\d+ = float32\[3,4\] input x$/m);
  expect(text('collectives.txt')).toBe('3 AllGather of 2 ranks: 96 bytes\n');
});

test('shardings that do not fit are refused by the name of the tensor', () => {
  const traced = traceProgram((({ w }: any) => tf.neg(w)) as any, { w: float(6, 4) });
  const split = (sharding: Sharding) => () =>
    partitionProgram(traced, { inputs: () => sharding, outputs: () => undefined }, [4]);
  expect(split([[0], []])).toThrow(
    "The input w, [6,4], can't be split as [[0],[]] over a mesh of 4: expected, for each dimension, axes that divide it, each of " +
      'them once.',
  );
  expect(split([[], [1]])).toThrow('over a mesh of 4: expected, for each dimension, axes');
  expect(split([[]])).toThrow("can't be split as [[]]");
});

test('tables and classes of which each rank has a part', async () => {
  const table = (mesh: readonly number[]) =>
    expectSharing(
      ([rows, ids, labels]: any[]) => {
        const loss = (w: any) =>
          tf.mean(
            ops.softmaxCrossEntropy(tf.matMul(ops.embeddingLookup(w, ids) as any, w, false, true), labels),
          );
        const { value, grads } = valueAndGrad(
          ((w: any) => ({ value: loss(w), aux: [] })) as any,
          rows,
        ) as any;
        return [value, grads];
      },
      [floats([12, 6], -1, 1, 1), ints([8], 0, 12), ints([8], 0, 12)],
      mesh,
      drawsOf(mesh.length + 5),
      'a table',
    );
  for (const mesh of MESHES) await table(mesh);
});

/** Runs a rank's program on the parts of all ranks, and checks the results. @returns its collectives */
async function expectShared(
  f: (inputs: any[]) => Tensor[],
  inputs: readonly HostTensor[],
  shardings: readonly (Sharding | undefined)[],
  outputs: readonly (Sharding | undefined)[],
  mesh: readonly number[],
) {
  const specs = inputs.map(({ shape, dtype }) => ({ shape, dtype }));
  const whole = optimize(traceProgram(f as any, specs).graph);
  const own = ofRank(f, specs, shardings, outputs, mesh);
  const of = (sharding: Sharding | undefined, { length }: readonly number[]) =>
    sharding ?? Array.from({ length }, () => []);
  const ranks = mesh.reduce((a, b) => a * b, 1);
  const parts = Array.from({ length: ranks }, (_, rank) =>
    inputs.map(({ data, shape }, i) => partOf(data, shape, of(shardings[i], shape), mesh, rank)),
  );
  const expected = await runRanks(whole, [inputs.map(({ data }) => data)]);
  const results = await runRanks(own, parts);
  whole.outputs.forEach(({ shape, dtype }, i) => {
    const data = wholeFrom(results[i]!, shape, of(outputs[i], shape), mesh);
    expectClose({ shape, dtype, data }, { shape, dtype, data: expected[i]![0]! });
  });
  return collectivesOf(own);
}

describe('rows on several ranks', () => {
  const rows: Sharding = [[1, 0], []];
  // The first and the last of each part among them.
  const data = Int32Array.from([0, 5, 6, 7, 11, 12, 23, 18, 17, 1, 22, 6]);
  const ids: HostTensor = { shape: [12], dtype: 'int32', data };

  test('are looked up where they are', async () => {
    const f = ([table, ids]: any[]) => [tf.gather(table, ids)];
    const table = floats([24, 40], -1, 1, 8);
    expect(await expectShared(f, [table, ids], [rows, undefined], [undefined], [2, 2])).toEqual([
      'AllReduce [12,40] over 0,1',
    ]);
  });

  test('get the sums of their segments, and the classes of labels', async () => {
    const f = ([x, ids]: any[]) => [tf.unsortedSegmentSum(x, ids, 24), tf.oneHot(ids, 24)];
    const outputs = [rows, [[], [1, 0]]] as const;
    const inputs = [floats([12, 40], -1, 1, 9), ids];
    expect(await expectShared(f, inputs, [undefined, undefined], outputs, [2, 2])).toEqual([]);
  });
});

test('a minor dimension that is split is no block of the dimension that it is joined to', async () => {
  const x = floats([4, 6], -1, 1, 6);
  const f = ([x]: any[]) => [tf.neg(tf.reshape(x, [24]))];
  expect(await expectShared(f, [x], [[[], [0]]], [[[0]]], [2])).toEqual(['AllToAll [4,3] over 0']);
});

test('the sum of greatest elements is not the greatest of sums', async () => {
  const f = ([x, y]: any[]) => [tf.add(tf.max(x, 1), tf.max(y, 1))];
  const split: Sharding = [[], [0]];
  const inputs = [floats([5, 40], -1, 1, 10), floats([5, 40], -1, 1, 11)];
  expect(await expectShared(f, inputs, [split, split], [undefined], [4])).toEqual([
    'AllReduce [5] over 0',
    'AllReduce [5] over 0',
  ]);
});

const some = [
  'BatchMatMul',
  'Sum',
  'Reshape',
  'Transpose',
  'Attention',
  'Mean',
  'GatherV2',
  'OneHot',
  'Concat',
  'Conv2D',
];

test.each(some)('%s agrees with one process', async (op) => {
  const draw = drawsOf(7);
  const c = caseTable[op]![0]!;
  await expectSharing(program(c, c.f), c.inputs, MESHES[draw(MESHES.length)]!, draw, op);
});
