/** @file Random collectives of a mesh, and values for them. */
import fc from 'fast-check';
import type { Attrs } from '../../../../src/compiler/program/ir.js';
import {
  type DType,
  type HostArray,
  newHostArray,
  type Shape,
  sizeOf,
} from '../../../../src/compiler/program/tensors.js';
import { groupOf, memberOf, membersOf, ranksOf } from '../../../../src/compiler/rules/collectiveRules.js';
import { GraphMaker } from './rankPrograms.js';

/** A collective of one input. */
export interface Case {
  readonly op: string;
  readonly attrs: Attrs;
  readonly shape: Shape;
  readonly dtype: DType;
}

/** Any collective over any axes of a mesh, of sizes that its members divide. */
export const caseOf = (mesh: readonly number[]): fc.Arbitrary<Case> =>
  fc
    .record({
      op: fc.constantFrom(
        'AllReduce',
        'AllGather',
        'ReduceScatter',
        'AllToAll',
        'CollectivePermute',
        'OwnPart',
      ),
      axes: fc.shuffledSubarray(
        mesh.map((_, i) => i),
        { minLength: 1 },
      ),
      sizes: fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 2, maxLength: 4 }),
      dims: fc.tuple(fc.nat(), fc.nat()),
      number: fc.constantFrom<DType>('float32', 'int32'),
      moved: fc.constantFrom<DType>('float32', 'int32', 'bool'),
      reduction: fc.constantFrom('sum', 'max', 'min'),
    })
    .map(({ op, axes, sizes, dims, number, moved, reduction }) => {
      const dim = dims[0] % sizes.length;
      const to = (dim + 1 + (dims[1] % (sizes.length - 1))) % sizes.length;
      const ways = membersOf({ mesh, axes });
      const isWhole = op === 'AllReduce' || op === 'AllGather' || op === 'CollectivePermute';
      const shape = sizes.map((size, i) => (i === dim && !isWhole ? size * ways : size));
      const others: Record<string, Attrs> = {
        ...{ AllReduce: { reduction }, AllToAll: { from: dim, to } },
        CollectivePermute: { by: dims[1] % 2 === 0 ? 1 : -1 },
      };
      const own = others[op] ?? { dim };
      const sums = op === 'AllReduce' || op === 'ReduceScatter';
      return { op, attrs: { mesh, axes, ...own }, shape, dtype: sums ? number : moved };
    });

/** Values of which sums depend on the order, with the ugly ones of each dtype. */
function valuesOf(dtype: DType, size: number, salt: number): HostArray {
  const array = newHostArray(dtype, size);
  for (let i = 0; i < size; i++) {
    const x = Math.sin(1 + 37 * salt + i) * 10 ** ((3 * salt + i) % 9);
    if (dtype === 'bool') array[i] = x > 0 ? 1 : 0;
    else if (dtype === 'int32') array[i] = Math.trunc(x * 2 ** 12);
    else array[i] = i % 11 === 10 ? [Number.NaN, Number.POSITIVE_INFINITY, -x][salt % 3]! : x;
  }
  return array;
}

/** A program of all cases, and inputs of each rank. */
export function programOf(mesh: readonly number[], cases: readonly Case[]) {
  const maker = new GraphMaker();
  const outputs = cases.flatMap(({ op, attrs, shape, dtype }) =>
    maker.add(op, [maker.input(shape, dtype)], attrs),
  );
  const given = Array.from({ length: sizeOf(mesh) }, (_, rank) =>
    cases.map(({ shape, dtype }, i) => valuesOf(dtype, sizeOf(shape), 5 * i + rank)),
  );
  return { graph: maker.graph(...outputs), given };
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
function reduced(parts: readonly HostArray[], pair: Pair): HostArray {
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
export function meaningOf(
  { op, attrs, shape }: Pick<Case, 'op' | 'attrs' | 'shape'>,
  given: readonly HostArray[],
  pairs = PAIRS,
): HostArray[] {
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
        return reduced(parts, pairs[reduction]!);
      case 'AllGather':
        return joined(parts, shape, dim);
      case 'ReduceScatter':
        return partOf(reduced(parts, pairs[reduction]!), shape, dim, ways, member);
      case 'AllToAll':
        return joined(
          parts.map((part) => partOf(part, shape, from, ways, member)),
          split,
          to,
        );
      case 'CollectivePermute':
        return parts[(member - (attrs.by as number) + ways) % ways]!;
      case 'OwnPart':
        return partOf(own, shape, dim, ways, member);
      default:
        return Int32Array.of(member);
    }
  });
}
