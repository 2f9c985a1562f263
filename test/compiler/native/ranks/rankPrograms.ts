/** @file Graphs of collectives for tests, their runs on ranks that are threads, and their meaning in JavaScript. */

import { type NativeOptions, tryNative } from '../../../../src/compiler/native/compileNatively.js';
import { openThreadRanks } from '../../../../src/compiler/native/threadRanks.js';
import {
  type Attrs,
  type Graph,
  type Node,
  newValue,
  type Value,
} from '../../../../src/compiler/program/ir.js';
import type { RankCalls } from '../../../../src/compiler/program/rankCalls.js';
import {
  type DType,
  type HostArray,
  newHostArray,
  type Shape,
  sizeOf,
} from '../../../../src/compiler/program/tensors.js';
import { groupOf, memberOf, membersOf, ranksOf } from '../../../../src/compiler/rules/collectiveRules.js';
import { inferOutputs } from '../../../../src/compiler/rules/index.js';

/** Makes a graph node by node. */
export class GraphMaker {
  readonly inputs: Value[] = [];
  readonly nodes: Node[] = [];

  input(shape: Shape, dtype: DType = 'float32'): Value {
    const value = newValue({ shape, dtype }, { name: `x${this.inputs.length}` });
    this.inputs.push(value);
    return value;
  }

  add(op: string, inputs: readonly Value[], attrs: Attrs = {}, bodies?: readonly Graph[]): Value[] {
    const outputs = inferOutputs(op, inputs, attrs, bodies).map((spec) => newValue(spec));
    this.nodes.push({ op, inputs, outputs, attrs, scope: 'net', ...(bodies && { bodies }) });
    return outputs;
  }

  graph(...outputs: Value[]): Graph {
    return { inputs: this.inputs, nodes: this.nodes, outputs };
  }
}

/** Runs a graph on every rank; `given` are the inputs of each. @returns the outputs of each. */
export async function runOnThreads(
  graphs: readonly Graph[],
  given: readonly (readonly HostArray[])[],
  options: NativeOptions & { readonly times?: number } = {},
): Promise<HostArray[][]> {
  const { ranks, close } = await openThreadRanks(given.length);
  const all = await Promise.allSettled(ranks.map((each) => openOn(each, graphs, options)));
  const [failed] = all.filter((each) => each.status === 'rejected');
  if (failed) throw failed.reason;
  const backends = all.map((each) => (each as PromiseFulfilledResult<Opened>).value);
  const results = backends.map(({ newOutputs }) => newOutputs());
  const ended = await Promise.allSettled(
    backends.map(({ backend }, rank) =>
      backend.bind({ inputs: given[rank]!, outputs: results[rank]! })(options.times),
    ),
  );
  await Promise.all(backends.map(({ backend }) => backend.dispose()));
  close();
  const errors = ended.flatMap((each) => (each.status === 'rejected' ? [each.reason as Error] : []));
  if (errors.length > 0) throw new AggregateError(errors, errors.map(({ message }) => message).join('\n'));
  return results;
}

type Opened = Awaited<ReturnType<typeof openOn>>;

async function openOn(ranks: RankCalls, [first, then]: readonly Graph[], options: NativeOptions) {
  const attempt = await tryNative(first!, { ...options, ranks, ...(then && { following: () => then }) });
  if ('reason' in attempt) throw new Error(attempt.reason);
  const outputs = [first!, ...(then ? [then] : [])].flatMap((graph) => graph.outputs);
  return {
    backend: attempt.backend,
    newOutputs: () => outputs.map(({ dtype, shape }) => newHostArray(dtype, sizeOf(shape))),
  };
}

const product = (shape: Shape, from: number, to = shape.length): number => sizeOf(shape.slice(from, to));

/** Part `member` of `ways` along `dim`. */
function partOf(x: HostArray, shape: Shape, dim: number, ways: number, member: number): HostArray {
  const run = product(shape, dim) / ways;
  return x.filter((_, i) => Math.floor(i / run) % ways === member);
}

/** Parts joined along `dim`; `shape` is that of one. */
function joined(parts: readonly HostArray[], shape: Shape, dim: number): HostArray {
  const [outer, run] = [product(shape, 0, dim), product(shape, dim)];
  const whole = parts[0]!.slice(0, 0).constructor as new (size: number) => HostArray;
  const result = new whole(parts.length * outer * run);
  for (let o = 0; o < outer; o++)
    for (const [i, part] of parts.entries())
      result.set(part.subarray(o * run, (o + 1) * run), (o * parts.length + i) * run);
  return result;
}

type Pair = (a: number, b: number) => number;
const PAIRS: Readonly<Record<string, Pair>> = { sum: (a, b) => a + b, max: Math.max, min: Math.min };

/** The tree of pairs over the members' arrays; int32 wraps and float32 rounds as arrays do. */
function reduced(parts: readonly HostArray[], reduction: string): HostArray {
  const pair = PAIRS[reduction]!;
  let level = [...parts];
  while (level.length > 1)
    level = level.flatMap((left, i) => {
      const right = level[i + 1];
      if (i % 2 === 1) return [];
      return right === undefined ? [left] : [left.map((a, j) => pair(a, right[j]!))];
    });
  return level[0]!;
}

/** What an operation gives on each rank, by what each has. */
export function meaningOf(op: string, attrs: Attrs, shape: Shape, given: readonly HostArray[]): HostArray[] {
  const group = groupOf(attrs);
  const ways = membersOf(group);
  const { dim, from, to } = attrs as Record<'dim' | 'from' | 'to', number>;
  const { reduction = 'sum' } = attrs as { readonly reduction?: string };
  return given.map((own, rank) => {
    const parts = ranksOf(group, rank).map((each) => given[each]!);
    const member = memberOf(group, rank);
    const split = shape.map((size, i) => (i === from ? size / ways : size));
    switch (op) {
      case 'AllReduce':
        return reduced(parts, reduction);
      case 'AllGather':
        return joined(parts, shape, dim);
      case 'ReduceScatter':
        return partOf(reduced(parts, reduction), shape, dim, ways, member);
      case 'AllToAll':
        return joined(
          parts.map((part) => partOf(part, shape, from, ways, member)),
          split,
          to,
        );
      case 'OwnPart':
        return partOf(own, shape, dim, ways, member);
      default:
        return Int32Array.of(member);
    }
  });
}
