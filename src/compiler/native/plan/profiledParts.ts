/** @file Profiled parts of a program: layers, FLOPs and bytes behind each timing mark. */
import type { Part } from '../../profile/part.js';
import { operandBytes, operandStorage, type Precision } from '../../program/precision.js';
import { sizeOf } from '../../program/tensors.js';
import { collectiveOf } from './collectives.js';
import { type Access, sameAccess } from './iteration.js';
import type { NativePlan } from './planGraphs.js';
import type { ProductUnit } from './products.js';
import type { Packing } from './stages.js';
import type { Step } from './threadSteps.js';
import type { CallUnit, LoopUnit, Unit } from './units.js';
import { type Buffer, shortStorage, storageBytes, type View } from './views.js';

/** Scopes with their weights, normalized to a sum of 1. */
function sharesOf(weights: readonly (readonly [scope: string, weight: number])[]): Part['shares'] {
  const byScope = new Map<string, number>();
  for (const [scope, weight] of weights) byScope.set(scope, (byScope.get(scope) ?? 0) + weight);
  const total = [...byScope.values()].reduce((sum, weight) => sum + weight, 0);
  return [...byScope].map(([scope, weight]) => ({
    scope,
    share: total === 0 ? 1 / byScope.size : weight / total,
  }));
}

/** Bytes of this many elements, if they are in memory that threads share. */
const sharedBytes = ({ home, storage }: Buffer, elements: number): number =>
  home.kind === 'scratch' || home.kind === 'register' ? 0 : elements * storageBytes(storage);

const packedBytes = (precision: Precision, elements: number): number => elements * operandBytes(precision);

const itemsOf = ({ batch }: ProductUnit): number => sizeOf(batch);

const productFlops = (unit: ProductUnit): number => 2 * itemsOf(unit) * unit.m * unit.n * unit.k;

const productLabel = (unit: ProductUnit): string => {
  const { m, n, k, precision, batch } = unit;
  const items = batch.length === 0 ? '' : `${itemsOf(unit)} times `;
  return `${items}${m}x${k} by ${k}x${n}${shortStorage(operandStorage(precision))}`;
};

/** A product whose right operand is already packed. */
function productPart(unit: ProductUnit): Part {
  const { m, n, k, a, c, precision, scope } = unit;
  const perItem = sharedBytes(a.buffer, m * k) + packedBytes(precision, k * n) + sharedBytes(c.buffer, m * n);
  return {
    kind: 'product',
    label: productLabel(unit),
    shares: sharesOf([[scope, 1]]),
    flops: productFlops(unit),
    bytes: perItem * itemsOf(unit),
  };
}

/** Products that pack both operands. */
function productsPart(products: readonly ProductUnit[]): Part {
  const bytes = ({ m, n, k, a, b, c, precision }: ProductUnit): number =>
    sharedBytes(a.buffer, m * k) +
    sharedBytes(b.buffer, k * n) +
    packedBytes(precision, k * (m + n)) +
    sharedBytes(c.buffer, m * n);
  return {
    kind: 'product',
    label: products.map(productLabel).join(', '),
    shares: sharesOf(products.map((unit) => [unit.scope, productFlops(unit)])),
    flops: products.reduce((sum, unit) => sum + productFlops(unit), 0),
    bytes: products.reduce((sum, unit) => sum + bytes(unit), 0),
  };
}

function packPart(packings: readonly Packing[]): Part {
  const size = ({ unit: { k, n } }: Packing): number => k * n;
  return {
    kind: 'packing',
    label: packings.map(({ unit: { k, n } }) => `${k}x${n}`).join(', '),
    shares: sharesOf(packings.map((packing) => [packing.unit.scope, size(packing)])),
    flops: 0,
    bytes: packings.reduce(
      (sum, packing) =>
        sum +
        sharedBytes(packing.unit.b.buffer, size(packing)) +
        packedBytes(packing.precision, size(packing)),
      0,
    ),
  };
}

/** Elements that an access reaches; an axis with stride 0 counts once. */
function reached({ rows, column }: Access, columns: number): number {
  const ofRows = rows.reduce((size, run) => (run.stride === 0 ? size : size * run.size), 1);
  return ofRows * (column === 0 ? 1 : Math.max(1, columns));
}

function loopPart({ nodes, columns }: LoopUnit): Part {
  const seen: Access[] = [];
  let bytes = 0;
  for (const { reads, write, wide, role } of nodes) {
    for (const access of reads) {
      if (typeof access === 'number' || seen.some((other) => sameAccess(other, access))) continue;
      seen.push(access);
      bytes += sharedBytes(access.buffer, reached(access, wide ? columns : 1));
    }
    // A second read in the same loop comes from a register.
    seen.push(write);
    bytes += sharedBytes(
      write.buffer,
      reached(write, wide && role !== 'row' && role !== 'all' ? columns : 1),
    );
  }
  const ops = [...new Set(nodes.map(({ op }) => op))];
  return {
    kind: 'loop',
    label: ops.length > 6 ? `${ops.slice(0, 6).join(', ')}, …` : ops.join(', '),
    // Nodes with a value per column take the loop's time; those with one per row take almost none.
    shares: sharesOf(nodes.map(({ scope, wide }) => [scope, wide ? Math.max(1, columns) : 1])),
    flops: 0,
    bytes,
  };
}

function callPart(unit: CallUnit): Part {
  const { form, inputs, outputs, attrs, scope } = unit;
  const collective = collectiveOf(unit);
  const among = collective === undefined ? '' : ` among ${collective.members} ranks`;
  const bytes = ({ buffer, shape }: View): number => sharedBytes(buffer, sizeOf(shape));
  return {
    kind: form.part ?? 'other',
    label: `${form.name} ${outputs[0]!.shape.join('x')}${among}`,
    shares: sharesOf([[scope, 1]]),
    flops: form.work?.(inputs, attrs) ?? 0,
    bytes: [...inputs, ...outputs].reduce((sum, view) => sum + bytes(view), 0),
  };
}

function unitPart(unit: Unit): Part {
  if (unit.kind === 'product') return productPart(unit);
  return unit.kind === 'loop' ? loopPart(unit) : callPart(unit);
}

function stepParts(step: Step): Part[] {
  switch (step.kind) {
    case 'chain':
      return step.chain.units.map(unitPart);
    case 'pack':
      return [packPart(step.packings)];
    case 'products':
      return [productsPart(step.products)];
    case 'finish':
      return [
        {
          kind: 'other',
          label: 'partial sums of blocks',
          shares: sharesOf(step.accumulators.map(({ node, size, items }) => [node.scope, items * size])),
          flops: 0,
          bytes: step.accumulators.reduce(
            (sum, { size, items, buffer }) => sum + 4 * (buffer.size + items * size),
            0,
          ),
        },
      ];
    default:
      return step.stage.units.map(unitPart);
  }
}

/** The parts of every step, in the order of their marks. */
export const partsOf = ({ plan }: NativePlan): Part[][] => plan.steps.map(stepParts);
