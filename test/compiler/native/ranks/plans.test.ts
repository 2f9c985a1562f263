/** @file Collectives in plans: dumps, profiles, memory, keys of stored plans, and the run once that they are not part of. */
import { expect, test } from 'vitest';
import { lowerToC, type NativeProgram } from '../../../../src/compiler/native/c/lowerToC.js';
import { unitsText } from '../../../../src/compiler/native/dump/unitText.js';
import { partsOf } from '../../../../src/compiler/native/plan/profiledParts.js';
import { verifyPlan } from '../../../../src/compiler/native/plan/verifyPlan.js';
import { programMemory } from '../../../../src/compiler/native/programMemory.js';
import { hashGraphs } from '../../../../src/compiler/native/stored/graphHash.js';
import type { Attrs, Graph } from '../../../../src/compiler/program/ir.js';
import { GraphMaker } from './rankPrograms.js';

const mesh = [2, 3];

/** One collective of an input. */
function graphOf(op: string, attrs: Attrs): Graph {
  const maker = new GraphMaker();
  const [out] = maker.add(op, [maker.input([6, 12])], { mesh, axes: [0], ...attrs });
  return maker.graph(...maker.add('Exp', [out!]));
}

function lowered(graph: Graph, frozen: readonly string[] = []): NativeProgram {
  const result = lowerToC(graph, { frozen });
  if ('missing' in result) throw new Error(result.missing);
  return result;
}

const cases: [op: string, attrs: Attrs, call: string, workspace: number][] = [
  [
    'AllReduce',
    { reduction: 'max' },
    '%2[6,12] = allReduce(in0[6,12]) {mesh: [2,3], axes: [0], reduction: max}, 288 bytes among 2 ranks',
    0,
  ],
  [
    'AllGather',
    { dim: 0, axes: [1] },
    '%2[18,12] = allGather(in0[6,12]) {mesh: [2,3], axes: [1], dim: 0}, 864 bytes among 3 ranks',
    0,
  ],
  [
    'AllGather',
    { dim: 1 },
    '%2[6,24] = allGather(in0[6,12]) {mesh: [2,3], axes: [0], dim: 1}, 576 bytes among 2 ranks',
    576,
  ],
  [
    'ReduceScatter',
    { dim: 0 },
    '%2[3,12] = reduceScatter(in0[6,12]) {mesh: [2,3], axes: [0], dim: 0}, 288 bytes among 2 ranks',
    288,
  ],
  [
    'AllToAll',
    { from: 0, to: 1, axes: [1, 0] },
    '%2[1,72] = allToAll(in0[6,12]) {mesh: [2,3], axes: [1,0], from: 0, to: 1}, 288 bytes among 6 ranks',
    0,
  ],
  [
    'AllToAll',
    { from: 1, to: 0 },
    '%2[12,6] = allToAll(in0[6,12]) {mesh: [2,3], axes: [0], from: 1, to: 0}, 288 bytes among 2 ranks',
    288,
  ],
  ['OwnPart', { dim: 1 }, '%2[6,6] = ownPart(in0[6,12]) {mesh: [2,3], axes: [0], dim: 1}', 0],
];

test.each(cases)('%s with %j has its bytes, its ranks and its workspace', (op, attrs, call, workspace) => {
  const graph = graphOf(op, attrs);
  const { plan, groups } = lowered(graph);
  expect(unitsText(plan.units).split('\n')[0]).toBe(`0. ${call}  # net`);
  expect(groups).toEqual([{ mesh, axes: attrs.axes ?? [0] }]);
  expect(programMemory(graph).packed).toBe(workspace);
  const [part] = partsOf(plan)[0]!;
  const among = / among \d ranks$/.exec(call)?.[0] ?? '';
  const [, shape, name] = /^%2\[(.*?)\] = (\w+)/.exec(call)!;
  expect(part).toMatchObject({
    kind: 'collective',
    label: `${name} ${shape!.replaceAll(',', 'x')}${among}`,
    shares: [{ scope: 'net', share: 1 }],
    flops: 0,
  });
});

test('a program has each of its groups once, in the order of its code', () => {
  const maker = new GraphMaker();
  const [x, sum] = [maker.input([6]), { mesh, reduction: 'sum' }];
  const [a] = maker.add('AllReduce', [x], { ...sum, axes: [1, 0] });
  const [b] = maker.add('AllReduce', [a!], { ...sum, axes: [0, 1] });
  const [c] = maker.add('AllGather', [b!], { mesh, axes: [1, 0], dim: 0 });
  expect(lowered(maker.graph(c!)).groups).toEqual([
    { mesh, axes: [1, 0] },
    { mesh, axes: [0, 1] },
  ]);
});

test('collectives of frozen inputs are in every run; numbers of members are not', () => {
  const gathered = lowered(graphOf('AllGather', { dim: 0 }), ['x0']).plan;
  expect([gathered.plan.onceSteps, gathered.plan.steps.length]).toEqual([0, 2]);
  const maker = new GraphMaker();
  const [number] = maker.add('MemberIndex', [], { mesh, axes: [0] });
  const numbered = lowered(maker.graph(...maker.add('Add', [number!, maker.input([], 'int32')]))).plan;
  expect(numbered.plan.onceSteps).toBe(1);
  const moved = { ...gathered.plan, onceSteps: 1 };
  expect(() => verifyPlan(moved, new Set([0]))).toThrow(
    "The native engine planned a call step of 'net' wrong: it runs once, and asks other ranks.",
  );
});

test('the group is part of the key of stored plans', () => {
  const keys = [
    graphOf('AllReduce', { reduction: 'sum' }),
    graphOf('AllReduce', { reduction: 'max' }),
    graphOf('AllReduce', { reduction: 'sum', axes: [1] }),
    graphOf('AllReduce', { reduction: 'sum', mesh: [2, 4] }),
    graphOf('AllReduce', { reduction: 'sum', axes: [0, 1] }),
    graphOf('AllReduce', { reduction: 'sum', axes: [1, 0] }),
  ].map((graph) => hashGraphs([graph]).hash);
  expect(new Set(keys).size).toBe(keys.length);
});
