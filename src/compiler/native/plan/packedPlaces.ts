/** @file Memory of packed operands: those that are read at different times lie in the same place. */
import { operandBytes } from '../../program/precision.js';
import { operandKey, type ProductUnit } from './products.js';
import type { Packing } from './stages.js';
import { keptPackings, type Plan, unitsOfStep } from './threadSteps.js';

/** Epochs from the packing of an operand to its last read, both inclusive. */
interface Span {
  from: number;
  to: number;
}

/** That of an operand that keeps its place. */
const ALWAYS: Span = { from: 0, to: Number.POSITIVE_INFINITY };

const keyOf = (unit: ProductUnit): string => operandKey('b', unit);

/** When operands are packed and read; around a loop, all of it. */
function spansOf({ steps, loops }: Plan): Map<string, Span> {
  const spans = new Map<string, Span>();
  const touch = (unit: ProductUnit, at: number): void => {
    const around = loops.filter(({ first, end }) => at >= first && at < end);
    const epochs = [at, ...around.flatMap(({ first, end }) => [first, end - 1])].map((i) => steps[i]!.epoch);
    const { from, to } = spans.get(keyOf(unit)) ?? { from: Number.POSITIVE_INFINITY, to: 0 };
    spans.set(keyOf(unit), { from: Math.min(from, ...epochs), to: Math.max(to, ...epochs) });
  };
  steps.forEach((step, at) => {
    if (step.kind === 'pack') for (const { unit } of step.packings) touch(unit, at);
    // Others pack for themselves.
    if (step.kind === 'chain' || step.kind === 'narrow')
      for (const unit of unitsOfStep(step)) if (unit.kind === 'product') touch(unit, at);
  });
  return spans;
}

/**
 * The number of each packing's place. Threads pack into one that others read from only behind a barrier; what persists between
 * runs has a place of its own. Larger operands choose first, so that a place is as large as its first one.
 */
export function packedPlaces(packings: readonly Packing[], plan: Plan): number[] {
  const [spans, kept] = [spansOf(plan), keptPackings(plan)];
  const taken: Span[][] = [];
  const places = new Map<Packing, number>();
  const bytes = ({ unit: { k, n }, precision }: Packing): number => k * n * operandBytes(precision);
  for (const packing of [...packings].sort((x, y) => bytes(y) - bytes(x))) {
    const span = (!kept.has(packing) && spans.get(keyOf(packing.unit))) || ALWAYS;
    const isFree = (others: readonly Span[]): boolean =>
      others.every(({ from, to }) => to < span.from || span.to < from);
    const free = taken.findIndex(isFree);
    const place = free === -1 ? taken.length : free;
    taken[place] = [...(taken[place] ?? []), span];
    places.set(packing, place);
  }
  return packings.map((packing) => places.get(packing)!);
}

/** What places take, whose operands take these bytes. */
export function bytesOfPlaces(places: readonly number[], bytes: readonly number[]): number {
  const largest = new Map<number, number>();
  places.forEach((place, i) => {
    largest.set(place, Math.max(largest.get(place) ?? 0, bytes[i]!));
  });
  return [...largest.values()].reduce((sum, each) => sum + each, 0);
}
